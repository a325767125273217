#ifndef DML_CUDA_H
#define DML_CUDA_H

#include <stdint.h>

/*
 * DirectML's FILL_VALUE_SEQUENCE and REVERSE_SUBSEQUENCES for NVIDIA GPUs on Linux, and on the CPU.
 *
 * Names are DirectML's with CUDA_ after DML_, so that this file and DirectML.h may be included in one another's company. Values
 * and layout are DirectML's: a pointer to a structure of DirectML.h may be cast to its namesake here.
 *
 * Every function may be called from any thread. A function that can fail answers a DML_CUDA_STATUS; where its last argument is
 * not NULL, it receives NULL, or why the call failed: an object that the caller destroys. Results are written on success only.
 * Pointers are NULL where a function says so, else valid for as long as it says, or for the call.
 */


/* An operator made ready for a device: `IDMLCompiledOperator`. Usable from any thread, by several at once. */
typedef struct DML_CUDA_COMPILED_OPERATOR DML_CUDA_COMPILED_OPERATOR;

/* A device: `IDMLDevice`. Usable from any thread. */
typedef struct DML_CUDA_DEVICE DML_CUDA_DEVICE;

/* Why a call failed. Owned by whoever received it, until `dml_cuda_destroy_error`. */
typedef struct DML_CUDA_ERROR DML_CUDA_ERROR;

/* A validated descriptor: `IDMLOperator`. Knows no device; usable from any thread. */
typedef struct DML_CUDA_OPERATOR DML_CUDA_OPERATOR;

/* What a function answers. */
typedef uint32_t DML_CUDA_STATUS;

/* `DML_FEATURE_LEVEL`; 0 stands for the highest. */
typedef uint32_t DML_CUDA_FEATURE_LEVEL;

/* `DML_OPERATOR_TYPE`. */
typedef uint32_t DML_CUDA_OPERATOR_TYPE;

/* A tensor of an operator, by the name of its field in the descriptor. */
typedef uint32_t DML_CUDA_TENSOR_ROLE;

/* What a device takes of a tensor of an operator at its feature level. */
typedef struct {
  /* 1 where the operator exists at that level and has such a tensor; else 0, and so is the rest. */
  uint32_t IsSupported;
  /* The least DimensionCount. */
  uint32_t MinimumDimensionCount;
  /* The highest DimensionCount. */
  uint32_t MaximumDimensionCount;
  /* Bit `1 << t` is set where the data type t is taken. */
  uint32_t DataTypeMask;
} DML_CUDA_TENSOR_SUPPORT;

/* `DML_OPERATOR_DESC`. */
typedef struct {
  /* Which operator `Desc` describes. */
  DML_CUDA_OPERATOR_TYPE Type;
  /* The operator's own descriptor. */
  const void *Desc;
} DML_CUDA_OPERATOR_DESC;

/* Whether the output of every dispatch is the input. */
typedef uint32_t DML_CUDA_IN_PLACE;

/* What every dispatch of a compiled operator keeps to, so that the driver compiles fewer kernels. */
typedef struct {
  /* What the input's and the output's addresses are multiples of, in bytes: a power of two, or 0 where nothing is known. 16
     gives the fastest kernel alone. */
  uint32_t PointerAlignment;
  /* Whether the output is the input. */
  DML_CUDA_IN_PLACE InPlace;
} DML_CUDA_COMPILE_OPTIONS;

/* `DML_BINDING_PROPERTIES`: what a dispatch needs besides its tensors. */
typedef struct {
  /* Input and output tensors: DirectML's descriptors are one for each, here there are none to allocate. */
  uint32_t RequiredDescriptorCount;
  /* Bytes of scratch memory: 0. */
  uint64_t TemporaryResourceSize;
  /* Bytes of memory that lives as long as the operator: 0. */
  uint64_t PersistentResourceSize;
} DML_CUDA_BINDING_PROPERTIES;

/* A rule that a descriptor breaks. The texts belong to the error that it was asked of. */
typedef struct {
  /* The rule's id, which never changes: `reverse.axis.range`. */
  const char *Rule;
  /* The field: `ReverseSubsequencesDesc.Axis`. */
  const char *Place;
  /* What the field holds. */
  const char *Found;
  /* What it would have to hold; NULL where a higher feature level takes what was found. */
  const char *Required;
  /* That level; 0 where there is none. */
  DML_CUDA_FEATURE_LEVEL NeededFeatureLevel;
} DML_CUDA_VIOLATION;

/* What ONNX Runtime's sessions of this process have had the library do; zeros in a library without that feature. */
typedef struct {
  /* Nodes of sessions that this library runs, those of sessions that are gone included. */
  uint64_t Nodes;
  /* Runs of such nodes. */
  uint64_t Runs;
  /* Those of them whose output was their input. */
  uint64_t InPlaceRuns;
} DML_CUDA_ONNXRUNTIME_COUNTERS;

/* An array of another library: any rank, elements of any whole bytes, strides in bytes. */
typedef struct {
  /* The first element. Only the address is looked at; it is also what a dispatch takes. */
  const void *Data;
  /* Numbers in Sizes, and in StridesInBytes. */
  uint32_t Rank;
  /* Bytes of an element, at least 1. */
  uint32_t ElementSizeInBytes;
  /* NULL of rank 0. */
  const int64_t *Sizes;
  /* None below 0. NULL: packed, in row-major order. */
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
  /* None on outputs; none or OWNED_BY_DML on inputs. */
  DML_CUDA_TENSOR_FLAGS Flags;
  /* 1 to 8. */
  uint32_t DimensionCount;
  /* `DimensionCount` numbers of elements, outermost dimension first. */
  const uint32_t *Sizes;
  /* `DimensionCount` distances in elements between neighbours; NULL is packed row-major. */
  const uint32_t *Strides;
  /* Bytes from the first element to the last, rounded up to a multiple of 4, or more. */
  uint64_t TotalTensorSizeInBytes;
  /* 0, or a power of two from 16 up. Raw pointers are held to their elements' alignment only. */
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

/* `DML_REVERSE_SUBSEQUENCES_OPERATOR_DESC`: the first `length` elements of every lane along Axis are reversed, the rest is
   copied. */
typedef struct {
  /* The tensor to read. */
  const DML_CUDA_TENSOR_DESC *InputTensor;
  /* UINT32 or UINT64, the input's sizes with 1 at Axis. A length above the axis size counts as it. */
  const DML_CUDA_TENSOR_DESC *SequenceLengthsTensor;
  /* Sizes and data type of the input; strides of its own. */
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

#define DML_CUDA_IN_PLACE_EITHER 0

#define DML_CUDA_IN_PLACE_NEVER 1

#define DML_CUDA_IN_PLACE_ALWAYS 2

/* Success. */
#define DML_CUDA_STATUS_OK 0

/* A pointer is NULL that may not be, or a value is none of its enumeration. */
#define DML_CUDA_STATUS_INVALID_ARGUMENT 1

/* The descriptor breaks rules of its operator, which the error lists. */
#define DML_CUDA_STATUS_VALIDATION 2

/* The device could not be opened: no driver, no such GPU. */
#define DML_CUDA_STATUS_DEVICE 3

/* The operator could not be made ready for the device. */
#define DML_CUDA_STATUS_COMPILE 4

/* The pointers do not fit the operator. Nothing was queued. */
#define DML_CUDA_STATUS_BINDING 5

/* The work could not be queued. */
#define DML_CUDA_STATUS_DISPATCH 6

/* A fault of this library, which says where. */
#define DML_CUDA_STATUS_INTERNAL 7

#ifdef __cplusplus
extern "C" {
#endif /* __cplusplus */

/* The library's version, such as `0.1.0`. The text lives as long as the process. */
const char *dml_cuda_version(void);

/* How many GPUs there are. A machine without NVIDIA's driver is an error, whose text says what is missing. */
DML_CUDA_STATUS dml_cuda_cuda_device_count(uint32_t *count, DML_CUDA_ERROR **error);

/* The CPU as a device, held to a feature level (0: the highest). Destroy it with `dml_cuda_destroy_device`. */
DML_CUDA_STATUS dml_cuda_create_cpu_device(DML_CUDA_FEATURE_LEVEL feature_level,
                                           DML_CUDA_DEVICE **device,
                                           DML_CUDA_ERROR **error);

/* A GPU in its primary context, held to a feature level (0: the highest). Destroy it with `dml_cuda_destroy_device`; what
   was loaded onto the GPU stays until the process ends. */
DML_CUDA_STATUS dml_cuda_create_cuda_device(uint32_t ordinal,
                                            DML_CUDA_FEATURE_LEVEL feature_level,
                                            DML_CUDA_DEVICE **device,
                                            DML_CUDA_ERROR **error);

/* Destroys a device; NULL is none. Operators that were compiled for it keep what they need. */
void dml_cuda_destroy_device(DML_CUDA_DEVICE *device);

/* The GPU's name, or `CPU`; NULL of NULL. The text belongs to the device. */
const char *dml_cuda_device_name(const DML_CUDA_DEVICE *device);

/* The feature level a device is held to; 0 of NULL. */
DML_CUDA_FEATURE_LEVEL dml_cuda_device_feature_level(const DML_CUDA_DEVICE *device);

/* What a device takes of a tensor of an operator: `DML_FEATURE_TENSOR_DATA_TYPE_SUPPORT`, by operator and tensor. */
DML_CUDA_STATUS dml_cuda_check_tensor_support(const DML_CUDA_DEVICE *device,
                                              DML_CUDA_OPERATOR_TYPE operator_type,
                                              DML_CUDA_TENSOR_ROLE tensor,
                                              DML_CUDA_TENSOR_SUPPORT *support,
                                              DML_CUDA_ERROR **error);

/* Whether a descriptor is accepted at a feature level (0: the highest), with no device. */
DML_CUDA_STATUS dml_cuda_validate(const DML_CUDA_OPERATOR_DESC *desc,
                                  DML_CUDA_FEATURE_LEVEL feature_level,
                                  DML_CUDA_ERROR **error);

/* Whether a version of DirectML, such as `1.8.0`, accepts a descriptor: its verdict, its mistakes included. */
DML_CUDA_STATUS dml_cuda_validate_as(const DML_CUDA_OPERATOR_DESC *desc,
                                     const char *directml_version,
                                     DML_CUDA_ERROR **error);

/* Validates a descriptor at the device's feature level: `IDMLDevice::CreateOperator`. The descriptor is copied. Destroy the
   operator with `dml_cuda_destroy_operator`. */
DML_CUDA_STATUS dml_cuda_create_operator(const DML_CUDA_DEVICE *device,
                                         const DML_CUDA_OPERATOR_DESC *desc,
                                         DML_CUDA_OPERATOR **operator_,
                                         DML_CUDA_ERROR **error);

/* Destroys an operator; NULL is none. */
void dml_cuda_destroy_operator(DML_CUDA_OPERATOR *operator_);

/* Plans an operator for a device and loads its kernels: `IDMLDevice::CompileOperator`. `options` may be NULL. Destroy the
   result with `dml_cuda_destroy_compiled_operator`. Not while a stream of this thread is being captured. */
DML_CUDA_STATUS dml_cuda_compile_operator(const DML_CUDA_DEVICE *device,
                                          const DML_CUDA_OPERATOR *operator_,
                                          const DML_CUDA_COMPILE_OPTIONS *options,
                                          DML_CUDA_COMPILED_OPERATOR **compiled,
                                          DML_CUDA_ERROR **error);

/* Destroys a compiled operator; NULL is none. Work that it queued goes on: the kernels stay loaded. */
void dml_cuda_destroy_compiled_operator(DML_CUDA_COMPILED_OPERATOR *compiled);

/* What a dispatch needs besides its tensors: nothing. `IDMLDispatchable::GetBindingProperties`. */
DML_CUDA_STATUS dml_cuda_get_binding_properties(const DML_CUDA_COMPILED_OPERATOR *compiled,
                                                DML_CUDA_BINDING_PROPERTIES *properties,
                                                DML_CUDA_ERROR **error);

/* Runs a compiled operator: on a GPU queued on `stream` (a CUstream or cudaStream_t; NULL, 1 and 2 are the default streams), on
   the CPU device before it returns, with `stream` NULL.

   `inputs` are the addresses of the input tensors' first elements in the order of the descriptor's fields (InputTensor,
   SequenceLengthsTensor; none for a fill), `output` that of the output's: device memory for a GPU, host memory for the CPU
   device. `output` equal to InputTensor's address runs in place. On a GPU nothing is allocated, copied or waited for, and the
   call may be captured into a CUDA graph. The memory stays as it is until the work, or the last replay of its graph, is done.
   A failed call has queued and written nothing. */
DML_CUDA_STATUS dml_cuda_dispatch(const DML_CUDA_COMPILED_OPERATOR *compiled,
                                  const void *const *inputs,
                                  uint32_t input_count,
                                  void *output,
                                  void *stream,
                                  DML_CUDA_ERROR **error);

/* What a dispatch of an operator would do on a GPU, whether there is one or not: merged dimensions, kernels, grids, bytes, and
   why no faster kernel runs. `target` is `t4`, `l4`, `a100`, `h100`, `b200`, or `shared=KIB,sm=COUNT[,clusters]`. Free the text
   with `dml_cuda_free_string`. */
DML_CUDA_STATUS dml_cuda_explain(const DML_CUDA_OPERATOR *operator_,
                                 const char *target,
                                 char **explanation,
                                 DML_CUDA_ERROR **error);

/* Frees a text of `dml_cuda_explain`; NULL is none. */
void dml_cuda_free_string(char *string);

/* The status of an error; 0 of NULL. */
DML_CUDA_STATUS dml_cuda_error_status(const DML_CUDA_ERROR *error);

/* What went wrong, where, and what would have been right: a line for each broken rule, else one. The text belongs to the
   error; NULL of NULL. */
const char *dml_cuda_error_message(const DML_CUDA_ERROR *error);

/* How many rules the descriptor breaks; 0 where the error is of another kind. */
uint32_t dml_cuda_error_violation_count(const DML_CUDA_ERROR *error);

/* A broken rule, by its place among them. The texts belong to the error. */
DML_CUDA_STATUS dml_cuda_error_violation(const DML_CUDA_ERROR *error, uint32_t index, DML_CUDA_VIOLATION *violation);

/* Destroys an error; NULL is none. */
void dml_cuda_destroy_error(DML_CUDA_ERROR *error);

/* What ONNX Runtime's sessions of this process have had this library do: a way to see that it is in use. */
DML_CUDA_STATUS dml_cuda_onnxruntime_counters(DML_CUDA_ONNXRUNTIME_COUNTERS *counters, DML_CUDA_ERROR **error);

/* Compiles a reversal of arrays along `axis`, from the end where negative: dimensions are folded, and elements are moved as integers of 1
   to 8 bytes. `lengths` has unsigned elements of 4 or 8 bytes, and a shape that NumPy broadcasts to the input's with 1 at the axis;
   its Data is not looked at. `output` has the input's sizes, and its Data where it is to run in place.

   Dispatch the result with arrays of the same layout, whose input and output are each aligned to 16 bytes if these are, and are the
   same if these are. A call like one before finds what that compiled. No size may be 0. Destroy the result with
   `dml_cuda_destroy_compiled_operator`. */
DML_CUDA_STATUS dml_cuda_compile_reversal(const DML_CUDA_DEVICE *device,
                                          const DML_CUDA_ARRAY *input,
                                          const DML_CUDA_ARRAY *lengths,
                                          const DML_CUDA_ARRAY *output,
                                          int32_t axis,
                                          DML_CUDA_COMPILED_OPERATOR **compiled,
                                          DML_CUDA_ERROR **error);

/* Compiles a fill of an array of at most 8 dimensions: element i, in row-major order, becomes start + i·delta. `data_type` is one that
   DirectML fills; the scalars are of that type. As of `dml_cuda_compile_reversal`, a call like one before finds what that compiled. */
DML_CUDA_STATUS dml_cuda_compile_sequence(const DML_CUDA_DEVICE *device,
                                          const DML_CUDA_ARRAY *output,
                                          DML_CUDA_TENSOR_DATA_TYPE data_type,
                                          const DML_CUDA_SCALAR_UNION *start,
                                          const DML_CUDA_SCALAR_UNION *delta,
                                          DML_CUDA_COMPILED_OPERATOR **compiled,
                                          DML_CUDA_ERROR **error);

#ifdef __cplusplus
}  /* extern "C" */
#endif  /* __cplusplus */

#endif  /* DML_CUDA_H */
