# The library is loaded by its path, so no import tells of it.
from PyInstaller.utils.hooks import collect_dynamic_libs

binaries = collect_dynamic_libs("dml_cuda")
