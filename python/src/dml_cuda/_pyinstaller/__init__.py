"""PyInstaller's hook, which it finds through the entry point ``pyinstaller40``."""

import pathlib


def hook_dirs() -> list[str]:
    return [str(pathlib.Path(__file__).parent)]
