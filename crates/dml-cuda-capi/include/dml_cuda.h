#ifndef DML_CUDA_H
#define DML_CUDA_H

#include <stdint.h>

/*
 * DirectML's FILL_VALUE_SEQUENCE and REVERSE_SUBSEQUENCES for NVIDIA GPUs on Linux, and on the CPU.
 *
 * Names are DirectML's with CUDA_ after DML_, so a file can include both this header and DirectML.h. Values and layout are
 * DirectML's: a pointer to a structure of DirectML.h can be cast to the structure of the same name here.
 *
 * Threads: every function may be called from any thread.
 * Errors: a function that can fail returns a DML_CUDA_STATUS. Its last argument receives an error object, or NULL on success, unless
 * it is NULL. The caller destroys the object. Only functions that read such an object, whose names begin with dml_cuda_error_, do not
 * have this argument. Results are written on success only.
 * Pointers: an argument may be NULL only where a comment says so. It must be valid during the call, or as long as a comment says.
 */


/* An operator that was compiled for a device: `IDMLCompiledOperator`. Usable from several threads at once. */
typedef struct DML_CUDA_COMPILED_OPERATOR DML_CUDA_COMPILED_OPERATOR;

/* A device: `IDMLDevice`. Usable from any thread. */
typedef struct DML_CUDA_DEVICE DML_CUDA_DEVICE;

/* Why a call failed. The caller owns it and destroys it with `dml_cuda_destroy_error`. */
typedef struct DML_CUDA_ERROR DML_CUDA_ERROR;

/* A validated descriptor: `IDMLOperator`. Belongs to no device. Usable from any thread. */
typedef struct DML_CUDA_OPERATOR DML_CUDA_OPERATOR;

/* The return value of a function. */
typedef uint32_t DML_CUDA_STATUS;

/* Counts of this library's work for the ONNX Runtime sessions of this process. All 0 in a build without the feature
   `onnxruntime`. */
typedef struct {
  /* Nodes that sessions loaded with this library, also those of closed sessions, and those that never ran. */
  uint64_t Nodes;
  /* Runs of such nodes. */
  uint64_t Runs;
  /* Runs in place: the output was the input. */
  uint64_t InPlaceRuns;
} DML_CUDA_ONNXRUNTIME_COUNTERS;

/* `DML_FEATURE_LEVEL`, or 0 for the highest. */
typedef uint32_t DML_CUDA_FEATURE_LEVEL;

/* `DML_OPERATOR_TYPE`. */
typedef uint32_t DML_CUDA_OPERATOR_TYPE;

/* A tensor of an operator, by the name of its field in the descriptor. */
typedef uint32_t DML_CUDA_TENSOR_ROLE;

/* The data types and dimensions that a device accepts for one tensor of an operator, at its feature level. */
typedef struct {
  /* 1 if the operator exists at that level and has such a tensor. Else 0, and the other fields are 0 too. */
  uint32_t IsSupported;
  /* The lowest DimensionCount. */
  uint32_t MinimumDimensionCount;
  /* The highest DimensionCount. */
  uint32_t MaximumDimensionCount;
  /* Bit `1 << t` is set if data type t is accepted. */
  uint32_t DataTypeMask;
} DML_CUDA_TENSOR_SUPPORT;

/* `DML_OPERATOR_DESC`. */
typedef struct {
  /* Which operator `Desc` describes. */
  DML_CUDA_OPERATOR_TYPE Type;
  /* The operator's own descriptor. */
  const void *Desc;
} DML_CUDA_OPERATOR_DESC;

/* `DML_BINDING_PROPERTIES`: what a dispatch needs besides its tensors. */
typedef struct {
  /* The number of input and output tensors, as in DirectML. There are no descriptors to allocate here. */
  uint32_t RequiredDescriptorCount;
  /* Bytes of scratch memory: 0. */
  uint64_t TemporaryResourceSize;
  /* Bytes of memory that lives as long as the operator: 0. */
  uint64_t PersistentResourceSize;
} DML_CUDA_BINDING_PROPERTIES;

/* An array of another library, with any rank, any element size in whole bytes, and strides in bytes. */
typedef struct {
  /* `sizeof(DML_CUDA_ARRAY)`. */
  uint32_t SizeInBytes;
  /* How many numbers Sizes and StridesInBytes have. */
  uint32_t Rank;
  /* The address of the first element. Compiling reads the address only, never the memory. A dispatch takes the same
     address. */
  const void *Data;
  /* Bytes of an element, at least 1. */
  uint64_t ElementSizeInBytes;
  /* May be NULL if Rank is 0. */
  const int64_t *Sizes;
  /* At least 0 each. NULL means packed, in row-major order. */
  const int64_t *StridesInBytes;
} DML_CUDA_ARRAY;

/* `DML_TENSOR_DATA_TYPE`. */
typedef uint32_t DML_CUDA_TENSOR_DATA_TYPE;

/* `DML_SCALAR_UNION`. */
typedef union {
  uint8_t Bytes[8];
  int8_t Int8;
  uint8_t UInt8;
  int16_t Int16;
  uint16_t UInt16;
  int32_t Int32;
  uint32_t UInt32;
  int64_t Int64;
  uint64_t UInt64;
  float Float32;
  double Float64;
} DML_CUDA_SCALAR_UNION;

/* A rule that a descriptor breaks. The texts belong to the error. */
typedef struct {
  /* The rule's id, which never changes: `reverse.axis.range`. */
  const char *Rule;
  /* The field: `ReverseSubsequencesDesc.Axis`. */
  const char *Place;
  /* The field's value. */
  const char *Found;
  /* The required value. NULL if a higher feature level accepts the value. */
  const char *Required;
  /* That feature level, else 0. */
  DML_CUDA_FEATURE_LEVEL NeededFeatureLevel;
  /* The tensor with the field, or `DML_CUDA_TENSOR_ROLE_NONE` for a field of the operator. */
  DML_CUDA_TENSOR_ROLE Tensor;
  /* The index in a field that is a list, else -1. */
  int32_t Index;
  /* The field's name: `Sizes`. NULL for the whole tensor or operator. */
  const char *Field;
} DML_CUDA_VIOLATION;

/* A program's names for the arguments of a call on arrays, as strings in UTF-8. */
typedef struct {
  /* `sizeof(DML_CUDA_NAMES)`. */
  uint32_t SizeInBytes;
  const char *Input;
  const char *Lengths;
  const char *Output;
  const char *Axis;
} DML_CUDA_NAMES;

/* `DML_TENSOR_FLAGS`. */
typedef uint32_t DML_CUDA_TENSOR_FLAGS;

/* `DML_TENSOR_TYPE`. */
typedef uint32_t DML_CUDA_TENSOR_TYPE;

/* `DML_TENSOR_DESC`. */
typedef struct {
  /* `DML_CUDA_TENSOR_TYPE_BUFFER`. */
  DML_CUDA_TENSOR_TYPE Type;
  /* A `DML_CUDA_BUFFER_TENSOR_DESC`. */
  const void *Desc;
} DML_CUDA_TENSOR_DESC;

/* `DML_BUFFER_TENSOR_DESC`. */
typedef struct {
  /* Type of the elements. */
  DML_CUDA_TENSOR_DATA_TYPE DataType;
  /* NONE on outputs, NONE or OWNED_BY_DML on inputs. */
  DML_CUDA_TENSOR_FLAGS Flags;
  /* 1 to 8. */
  uint32_t DimensionCount;
  /* `DimensionCount` numbers of elements, outermost dimension first. */
  const uint32_t *Sizes;
  /* `DimensionCount` distances between neighbours, in elements. NULL means packed, in row-major order. */
  const uint32_t *Strides;
  /* Bytes from the first element to the last, rounded up to a multiple of 4, or more. */
  uint64_t TotalTensorSizeInBytes;
  /* 0, or a power of two from 16 up. `dml_cuda_dispatch` requires only the alignment of an element. */
  uint32_t GuaranteedBaseOffsetAlignment;
} DML_CUDA_BUFFER_TENSOR_DESC;

/* `DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC`: element i of the output becomes ValueStart + i * ValueDelta. */
typedef struct {
  /* The tensor to fill. */
  const DML_CUDA_TENSOR_DESC *OutputTensor;
  /* The output's data type. */
  DML_CUDA_TENSOR_DATA_TYPE ValueDataType;
  /* Element 0. */
  DML_CUDA_SCALAR_UNION ValueStart;
  /* Difference between neighbours. */
  DML_CUDA_SCALAR_UNION ValueDelta;
} DML_CUDA_FILL_VALUE_SEQUENCE_OPERATOR_DESC;

/* `DML_REVERSE_SUBSEQUENCES_OPERATOR_DESC`: reverses the first `length` elements of every sequence along Axis, and copies
   the others. */
typedef struct {
  /* The tensor to read. */
  const DML_CUDA_TENSOR_DESC *InputTensor;
  /* UINT32 or UINT64, the input's sizes with 1 at Axis. A length above the axis size acts as the axis size. */
  const DML_CUDA_TENSOR_DESC *SequenceLengthsTensor;
  /* The sizes and data type of the input. The strides may differ. */
  const DML_CUDA_TENSOR_DESC *OutputTensor;
  /* The dimension along which elements are reversed. */
  uint32_t Axis;
} DML_CUDA_REVERSE_SUBSEQUENCES_OPERATOR_DESC;

#define DML_CUDA_TENSOR_DATA_TYPE_UNKNOWN 0

#define DML_CUDA_TENSOR_DATA_TYPE_FLOAT32 1

#define DML_CUDA_TENSOR_DATA_TYPE_FLOAT16 2

#define DML_CUDA_TENSOR_DATA_TYPE_UINT32 3

#define DML_CUDA_TENSOR_DATA_TYPE_UINT16 4

#define DML_CUDA_TENSOR_DATA_TYPE_UINT8 5

#define DML_CUDA_TENSOR_DATA_TYPE_INT32 6

#define DML_CUDA_TENSOR_DATA_TYPE_INT16 7

#define DML_CUDA_TENSOR_DATA_TYPE_INT8 8

#define DML_CUDA_TENSOR_DATA_TYPE_FLOAT64 9

#define DML_CUDA_TENSOR_DATA_TYPE_UINT64 10

#define DML_CUDA_TENSOR_DATA_TYPE_INT64 11

#define DML_CUDA_TENSOR_DATA_TYPE_UINT4 12

#define DML_CUDA_TENSOR_DATA_TYPE_INT4 13

#define DML_CUDA_TENSOR_FLAG_NONE 0

#define DML_CUDA_TENSOR_FLAG_OWNED_BY_DML 1

#define DML_CUDA_TENSOR_TYPE_BUFFER 1

#define DML_CUDA_OPERATOR_FILL_VALUE_SEQUENCE 104

#define DML_CUDA_OPERATOR_REVERSE_SUBSEQUENCES 106

#define DML_CUDA_FEATURE_LEVEL_HIGHEST 0

#define DML_CUDA_FEATURE_LEVEL_1_0 4096

#define DML_CUDA_FEATURE_LEVEL_2_0 8192

#define DML_CUDA_FEATURE_LEVEL_2_1 8448

#define DML_CUDA_FEATURE_LEVEL_3_0 12288

#define DML_CUDA_FEATURE_LEVEL_3_1 12544

#define DML_CUDA_FEATURE_LEVEL_4_0 16384

#define DML_CUDA_FEATURE_LEVEL_4_1 16640

#define DML_CUDA_FEATURE_LEVEL_5_0 20480

#define DML_CUDA_FEATURE_LEVEL_5_1 20736

#define DML_CUDA_FEATURE_LEVEL_5_2 20992

#define DML_CUDA_FEATURE_LEVEL_6_0 24576

#define DML_CUDA_FEATURE_LEVEL_6_1 24832

#define DML_CUDA_FEATURE_LEVEL_6_2 25088

#define DML_CUDA_FEATURE_LEVEL_6_3 25344

#define DML_CUDA_FEATURE_LEVEL_6_4 25600

#define DML_CUDA_TENSOR_ROLE_INPUT 0

#define DML_CUDA_TENSOR_ROLE_SEQUENCE_LENGTHS 1

#define DML_CUDA_TENSOR_ROLE_OUTPUT 2

/* In a `DML_CUDA_VIOLATION`: the operator itself. */
#define DML_CUDA_TENSOR_ROLE_NONE 4294967295

/* Success. */
#define DML_CUDA_STATUS_OK 0

/* A required pointer is NULL, or a value is not in its enumeration. */
#define DML_CUDA_STATUS_INVALID_ARGUMENT 1

/* The descriptor breaks rules of its operator. The error lists them. */
#define DML_CUDA_STATUS_VALIDATION 2

/* The device could not be opened: no driver, no such GPU. */
#define DML_CUDA_STATUS_DEVICE 3

/* The operator could not be compiled for the device. */
#define DML_CUDA_STATUS_COMPILE 4

/* The pointers do not fit the operator. Nothing was queued. */
#define DML_CUDA_STATUS_BINDING 5

/* The work could not be queued. */
#define DML_CUDA_STATUS_DISPATCH 6

/* A bug in this library. The message says where. */
#define DML_CUDA_STATUS_INTERNAL 7

/* PyTorch is not in the process, is too old, or did not do what it was asked for. */
#define DML_CUDA_STATUS_TORCH 8

#ifdef __cplusplus
extern "C" {
#endif /* __cplusplus */

/* The library's version, such as `0.3.0`. The text is valid until the process ends. */
const char *dml_cuda_version(void);

/* Counts what this library did for the ONNX Runtime sessions of this process. Shows whether it is in use. */
DML_CUDA_STATUS dml_cuda_onnxruntime_counters(DML_CUDA_ONNXRUNTIME_COUNTERS *counters, DML_CUDA_ERROR **error);

/* Counts the GPUs. On a machine without NVIDIA's driver this fails, and the message names what is missing. */
DML_CUDA_STATUS dml_cuda_cuda_device_count(uint32_t *count, DML_CUDA_ERROR **error);

/* Creates a CPU device with a feature level (0: the highest). Destroy it with `dml_cuda_destroy_device`. */
DML_CUDA_STATUS dml_cuda_create_cpu_device(DML_CUDA_FEATURE_LEVEL feature_level,
                                           DML_CUDA_DEVICE **device,
                                           DML_CUDA_ERROR **error);

/* Creates a device for a GPU, in its primary context, with a feature level (0: the highest). Destroy it with
   `dml_cuda_destroy_device`. Loaded kernels stay on the GPU until the process ends. */
DML_CUDA_STATUS dml_cuda_create_cuda_device(uint32_t ordinal,
                                            DML_CUDA_FEATURE_LEVEL feature_level,
                                            DML_CUDA_DEVICE **device,
                                            DML_CUDA_ERROR **error);

/* Creates a device for the first GPU, or, on a machine without NVIDIA's driver, for the CPU. A driver that fails, or
   that reports no GPU, is an error. */
DML_CUDA_STATUS dml_cuda_create_cuda_or_cpu_device(DML_CUDA_FEATURE_LEVEL feature_level,
                                                   DML_CUDA_DEVICE **device,
                                                   DML_CUDA_ERROR **error);

/* Destroys a device. Ignores NULL. Operators that were compiled for it stay usable. */
void dml_cuda_destroy_device(DML_CUDA_DEVICE *device);

/* Returns the GPU's name, or `CPU`. Returns NULL for NULL. The text belongs to the device. */
const char *dml_cuda_device_name(const DML_CUDA_DEVICE *device);

/* Returns the feature level of a device, or 0 for NULL. */
DML_CUDA_FEATURE_LEVEL dml_cuda_device_feature_level(const DML_CUDA_DEVICE *device);

/* Queries which data types and dimension counts a device accepts for one tensor of an operator:
   `DML_FEATURE_TENSOR_DATA_TYPE_SUPPORT`, by operator and tensor. */
DML_CUDA_STATUS dml_cuda_check_tensor_support(const DML_CUDA_DEVICE *device,
                                              DML_CUDA_OPERATOR_TYPE operator_type,
                                              DML_CUDA_TENSOR_ROLE tensor,
                                              DML_CUDA_TENSOR_SUPPORT *support,
                                              DML_CUDA_ERROR **error);

/* Validates a descriptor at a feature level (0: the highest). Needs no device. */
DML_CUDA_STATUS dml_cuda_validate(const DML_CUDA_OPERATOR_DESC *desc,
                                  DML_CUDA_FEATURE_LEVEL feature_level,
                                  DML_CUDA_ERROR **error);

/* Validates a descriptor as a version of DirectML does, such as `1.8.0`, including that version's mistakes. */
DML_CUDA_STATUS dml_cuda_validate_as(const DML_CUDA_OPERATOR_DESC *desc,
                                     const char *directml_version,
                                     DML_CUDA_ERROR **error);

/* Validates and copies a descriptor, at the device's feature level: `IDMLDevice::CreateOperator`. Destroy the operator
   with `dml_cuda_destroy_operator`. */
DML_CUDA_STATUS dml_cuda_create_operator(const DML_CUDA_DEVICE *device,
                                         const DML_CUDA_OPERATOR_DESC *desc,
                                         DML_CUDA_OPERATOR **operator_,
                                         DML_CUDA_ERROR **error);

/* Destroys an operator. Ignores NULL. */
void dml_cuda_destroy_operator(DML_CUDA_OPERATOR *operator_);

/* Plans an operator for a device and loads its kernels: `IDMLDevice::CompileOperator`. Destroy the result with
   `dml_cuda_destroy_compiled_operator`. With a driver older than CUDA 12.3, do not call this while this thread
   captures a stream.

   `options` is a string such as `specialize=always select=measure`, on top of `DML_CUDA_COMPILE_OPTIONS` in the
   environment, or NULL. docs/compile-options.md lists all options. */
DML_CUDA_STATUS dml_cuda_compile_operator(const DML_CUDA_DEVICE *device,
                                          const DML_CUDA_OPERATOR *operator_,
                                          const char *options,
                                          DML_CUDA_COMPILED_OPERATOR **compiled,
                                          DML_CUDA_ERROR **error);

/* Destroys a compiled operator. Ignores NULL. Queued work still completes, because the kernels stay loaded. */
void dml_cuda_destroy_compiled_operator(DML_CUDA_COMPILED_OPERATOR *compiled);

/* Reads what a dispatch needs besides its tensors, which is nothing: `IDMLDispatchable::GetBindingProperties`. */
DML_CUDA_STATUS dml_cuda_get_binding_properties(const DML_CUDA_COMPILED_OPERATOR *compiled,
                                                DML_CUDA_BINDING_PROPERTIES *properties,
                                                DML_CUDA_ERROR **error);

/* Runs a compiled operator. On a GPU it queues the work on `stream`: a CUstream or cudaStream_t, where NULL, 1 and 2
   are the default streams. On the CPU device `stream` must be NULL, and the work is done when the call returns.

   The stream must belong to the GPU's primary context, which the CUDA runtime uses and `cuDevicePrimaryCtxRetain`
   returns. A stream of a context that `cuCtxCreate` made must not be passed to this or to any other function.

   `inputs` are the addresses of the input tensors' first elements, in the order of the descriptor's fields:
   InputTensor and SequenceLengthsTensor. A fill has no inputs: `input_count` is 0, and `inputs` may be NULL. `output`
   is the address of the output's first element. A GPU needs device memory, the CPU device host memory. If `output`
   equals InputTensor's address, the operator runs in place.

   On a GPU the call allocates nothing, copies nothing and waits for nothing. Keep the memory until the work, or the
   last replay of its graph, is done. A failed call has queued and written nothing.

   A CUDA graph can capture the call. By default, the first captured call of a layout also makes the driver compile and
   load a kernel for it, in about 13 ms, or in less than 1 ms from the driver's cache. At most 1,024 such kernels stay
   loaded per GPU. Calls of an operator that was compiled with `specialize=never` use what is already loaded, as fast
   as any other call. */
DML_CUDA_STATUS dml_cuda_dispatch(const DML_CUDA_COMPILED_OPERATOR *compiled,
                                  const void *const *inputs,
                                  uint32_t input_count,
                                  void *output,
                                  void *stream,
                                  DML_CUDA_ERROR **error);

/* Explains what a dispatch does on a GPU: merged dimensions, bytes, grids, kernels with their estimates, and why
   others cannot run. Needs no GPU. `target` is `t4`, `l4`, `a100`, `h100`, `h200`, `b200`, or
   `shared=KIB,sm=COUNT[,clusters][,bandwidth=GBPS][,clock=MHZ][,l2=KIB][,threads=COUNT]`. Free the text with
   `dml_cuda_free_string`. */
DML_CUDA_STATUS dml_cuda_explain(const DML_CUDA_OPERATOR *operator_,
                                 const char *target,
                                 char **explanation,
                                 DML_CUDA_ERROR **error);

/* Frees a string of `dml_cuda_explain` or `dml_cuda_error_message_with_names`. Ignores NULL. */
void dml_cuda_free_string(char *string);

/* Compiles a reversal of arrays along `axis`. A negative axis counts from the end. Dimensions are merged, and elements
   move as integers of 1 to 8 bytes. No size may be 0.

   `lengths` has unsigned elements of 4 or 8 bytes. NumPy's rules must broadcast its shape to the input's with 1 at the
   axis. Its Data is ignored. `output` has the input's sizes. To run in place, give it the input's Data.

   Dispatch the result with arrays of the same layout. `options` is as for `dml_cuda_compile_operator`. A repeated call
   returns the operator from a cache. Destroy the result with `dml_cuda_destroy_compiled_operator`. */
DML_CUDA_STATUS dml_cuda_compile_reversal(const DML_CUDA_DEVICE *device,
                                          const DML_CUDA_ARRAY *input,
                                          const DML_CUDA_ARRAY *lengths,
                                          const DML_CUDA_ARRAY *output,
                                          int32_t axis,
                                          const char *options,
                                          DML_CUDA_COMPILED_OPERATOR **compiled,
                                          DML_CUDA_ERROR **error);

/* Reverses arrays along `axis`, as described for `dml_cuda_compile_reversal`, in one call: compiles the operator or
   finds it in a cache, and runs it on a stream as `dml_cuda_dispatch` takes one, or on the host with a stream of NULL.
   A size may be 0: then nothing is done.

   `lengths` has its own Data. On the host, no array need be aligned to its elements. A call that fails has queued and
   written nothing. */
DML_CUDA_STATUS dml_cuda_reverse_arrays(const DML_CUDA_DEVICE *device,
                                        const DML_CUDA_ARRAY *input,
                                        const DML_CUDA_ARRAY *lengths,
                                        const DML_CUDA_ARRAY *output,
                                        int32_t axis,
                                        const char *options,
                                        void *stream,
                                        DML_CUDA_ERROR **error);

/* Makes the work that is queued on a stream from now on wait for what another stream of the device has so far, such as
   the one that `__cuda_array_interface__` names. Both must belong to the GPU's primary context. Does not wait itself,
   and does nothing on the CPU device. While the stream is being captured into a CUDA graph, it waits only for another
   captured stream: a replay reads its memory later. */
DML_CUDA_STATUS dml_cuda_wait_for_stream(const DML_CUDA_DEVICE *device,
                                         void *stream,
                                         void *awaited,
                                         DML_CUDA_ERROR **error);

/* Compiles a fill of an array that is packed, or has at most 8 dimensions: element i, in row-major order, becomes
   start + i·delta. `data_type` is a type that DirectML fills, or FLOAT64 for a packed array. The elements and the
   scalars have that type. As with `dml_cuda_compile_reversal`, a repeated call uses a cache. Destroy the result with
   `dml_cuda_destroy_compiled_operator`. */
DML_CUDA_STATUS dml_cuda_compile_sequence(const DML_CUDA_DEVICE *device,
                                          const DML_CUDA_ARRAY *output,
                                          DML_CUDA_TENSOR_DATA_TYPE data_type,
                                          const DML_CUDA_SCALAR_UNION *start,
                                          const DML_CUDA_SCALAR_UNION *delta,
                                          const char *options,
                                          DML_CUDA_COMPILED_OPERATOR **compiled,
                                          DML_CUDA_ERROR **error);

/* Fills an array as described for `dml_cuda_compile_sequence`, in one call, as `dml_cuda_reverse_arrays` reverses. A
   size may be 0: then nothing is done. */
DML_CUDA_STATUS dml_cuda_fill_array(const DML_CUDA_DEVICE *device,
                                    const DML_CUDA_ARRAY *output,
                                    DML_CUDA_TENSOR_DATA_TYPE data_type,
                                    const DML_CUDA_SCALAR_UNION *start,
                                    const DML_CUDA_SCALAR_UNION *delta,
                                    const char *options,
                                    void *stream,
                                    DML_CUDA_ERROR **error);

#if !defined(_WIN32)
/* Registers the operators `dml_cuda::reverse_subsequences` and `dml_cuda::reverse_subsequences_`, and three private
   ones for this project's Python package, with the PyTorch of this process, for tensors on the CPU and on GPUs. Later
   calls do nothing. `libdml_cuda_torch.so` calls this when it is loaded.

   Fails with `DML_CUDA_STATUS_TORCH` if the process has not loaded PyTorch, if PyTorch is too old, or if another copy
   of this library has registered the operators. It is for Linux: the library for Windows does not have it. */
DML_CUDA_STATUS dml_cuda_register_torch(DML_CUDA_ERROR **error);
#endif

/* Returns the status of an error, or 0 for NULL. */
DML_CUDA_STATUS dml_cuda_error_status(const DML_CUDA_ERROR *error);

/* Returns the message: what went wrong, where, and what is required. It has one line per broken rule, else one line.
   The text belongs to the error. Returns NULL for NULL. */
const char *dml_cuda_error_message(const DML_CUDA_ERROR *error);

/* Returns how many rules the descriptor breaks, or 0 if the error has another cause. */
uint32_t dml_cuda_error_violation_count(const DML_CUDA_ERROR *error);

/* Reads the broken rule with this index. The texts belong to the error. */
DML_CUDA_STATUS dml_cuda_error_violation(const DML_CUDA_ERROR *error, uint32_t index, DML_CUDA_VIOLATION *violation);

/* Returns the message of a call on arrays with the caller's names for its arguments. Free the string with
   `dml_cuda_free_string`. */
DML_CUDA_STATUS dml_cuda_error_message_with_names(const DML_CUDA_ERROR *error,
                                                  const DML_CUDA_NAMES *names,
                                                  char **message);

/* Destroys an error. Ignores NULL. */
void dml_cuda_destroy_error(DML_CUDA_ERROR *error);

#ifdef __cplusplus
}  /* extern "C" */
#endif  /* __cplusplus */

#endif  /* DML_CUDA_H */
