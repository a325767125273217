# find_package(dml-cuda CONFIG) with CMAKE_PREFIX_PATH or dml-cuda_DIR at this folder: the imported target dml_cuda::dml_cuda.
# DML_CUDA_LIBRARY_DIR and DML_CUDA_INCLUDE_DIR name other places than the source tree's.
get_filename_component(_dml_cuda_crate "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
set(DML_CUDA_INCLUDE_DIR "${_dml_cuda_crate}/include" CACHE PATH "Where dml_cuda.h is")
set(DML_CUDA_LIBRARY_DIR "${_dml_cuda_crate}/../../target/release" CACHE PATH "Where libdml_cuda.so is")
find_library(DML_CUDA_LIBRARY dml_cuda PATHS "${DML_CUDA_LIBRARY_DIR}" NO_DEFAULT_PATH)
if(NOT DML_CUDA_LIBRARY)
  set(dml-cuda_FOUND FALSE)
  set(dml-cuda_NOT_FOUND_MESSAGE
      "there is no libdml_cuda.so in ${DML_CUDA_LIBRARY_DIR}: run cargo build --release -p dml-cuda-capi, or set DML_CUDA_LIBRARY_DIR")
  return()
endif()
if(NOT TARGET dml_cuda::dml_cuda)
  add_library(dml_cuda::dml_cuda SHARED IMPORTED)
  set_target_properties(dml_cuda::dml_cuda PROPERTIES
    IMPORTED_LOCATION "${DML_CUDA_LIBRARY}"
    IMPORTED_SONAME "libdml_cuda.so"
    INTERFACE_INCLUDE_DIRECTORIES "${DML_CUDA_INCLUDE_DIR}")
endif()
unset(_dml_cuda_crate)
