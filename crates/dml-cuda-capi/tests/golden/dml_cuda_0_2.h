/* include/dml_cuda.h of 0.2.0, without its comments: programs that were compiled with it run with the library. */
#ifndef DML_CUDA_H
#define DML_CUDA_H
#define DML_CUDA_0_2
#include <stdint.h>
typedef struct DML_CUDA_COMPILED_OPERATOR DML_CUDA_COMPILED_OPERATOR;
typedef struct DML_CUDA_DEVICE DML_CUDA_DEVICE;
typedef struct DML_CUDA_ERROR DML_CUDA_ERROR;
typedef struct DML_CUDA_OPERATOR DML_CUDA_OPERATOR;
typedef uint32_t DML_CUDA_STATUS;
typedef struct {
  uint64_t Nodes;
  uint64_t Runs;
  uint64_t InPlaceRuns;
} DML_CUDA_ONNXRUNTIME_COUNTERS;
typedef uint32_t DML_CUDA_FEATURE_LEVEL;
typedef uint32_t DML_CUDA_OPERATOR_TYPE;
typedef uint32_t DML_CUDA_TENSOR_ROLE;
typedef struct {
  uint32_t IsSupported;
  uint32_t MinimumDimensionCount;
  uint32_t MaximumDimensionCount;
  uint32_t DataTypeMask;
} DML_CUDA_TENSOR_SUPPORT;
typedef struct {
  DML_CUDA_OPERATOR_TYPE Type;
  const void *Desc;
} DML_CUDA_OPERATOR_DESC;
typedef uint32_t DML_CUDA_IN_PLACE;
typedef struct {
  uint32_t PointerAlignment;
  DML_CUDA_IN_PLACE InPlace;
} DML_CUDA_COMPILE_OPTIONS;
typedef struct {
  uint32_t RequiredDescriptorCount;
  uint64_t TemporaryResourceSize;
  uint64_t PersistentResourceSize;
} DML_CUDA_BINDING_PROPERTIES;
typedef struct {
  const void *Data;
  uint32_t Rank;
  uint32_t ElementSizeInBytes;
  const int64_t *Sizes;
  const int64_t *StridesInBytes;
} DML_CUDA_ARRAY;
typedef uint32_t DML_CUDA_TENSOR_DATA_TYPE;
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
typedef struct {
  const char *Rule;
  const char *Place;
  const char *Found;
  const char *Required;
  DML_CUDA_FEATURE_LEVEL NeededFeatureLevel;
} DML_CUDA_VIOLATION;
typedef uint32_t DML_CUDA_TENSOR_FLAGS;
typedef uint32_t DML_CUDA_TENSOR_TYPE;
typedef struct {
  DML_CUDA_TENSOR_TYPE Type;
  const void *Desc;
} DML_CUDA_TENSOR_DESC;
typedef struct {
  DML_CUDA_TENSOR_DATA_TYPE DataType;
  DML_CUDA_TENSOR_FLAGS Flags;
  uint32_t DimensionCount;
  const uint32_t *Sizes;
  const uint32_t *Strides;
  uint64_t TotalTensorSizeInBytes;
  uint32_t GuaranteedBaseOffsetAlignment;
} DML_CUDA_BUFFER_TENSOR_DESC;
typedef struct {
  const DML_CUDA_TENSOR_DESC *OutputTensor;
  DML_CUDA_TENSOR_DATA_TYPE ValueDataType;
  DML_CUDA_SCALAR_UNION ValueStart;
  DML_CUDA_SCALAR_UNION ValueDelta;
} DML_CUDA_FILL_VALUE_SEQUENCE_OPERATOR_DESC;
typedef struct {
  const DML_CUDA_TENSOR_DESC *InputTensor;
  const DML_CUDA_TENSOR_DESC *SequenceLengthsTensor;
  const DML_CUDA_TENSOR_DESC *OutputTensor;
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
#define DML_CUDA_STATUS_OK 0
#define DML_CUDA_STATUS_INVALID_ARGUMENT 1
#define DML_CUDA_STATUS_VALIDATION 2
#define DML_CUDA_STATUS_DEVICE 3
#define DML_CUDA_STATUS_COMPILE 4
#define DML_CUDA_STATUS_BINDING 5
#define DML_CUDA_STATUS_DISPATCH 6
#define DML_CUDA_STATUS_INTERNAL 7
#define DML_CUDA_STATUS_TORCH 8
#ifdef __cplusplus
extern "C" {
#endif
const char *dml_cuda_version(void);
DML_CUDA_STATUS dml_cuda_onnxruntime_counters(DML_CUDA_ONNXRUNTIME_COUNTERS *counters, DML_CUDA_ERROR **error);
DML_CUDA_STATUS dml_cuda_cuda_device_count(uint32_t *count, DML_CUDA_ERROR **error);
DML_CUDA_STATUS dml_cuda_create_cpu_device(DML_CUDA_FEATURE_LEVEL feature_level,
                                           DML_CUDA_DEVICE **device,
                                           DML_CUDA_ERROR **error);
DML_CUDA_STATUS dml_cuda_create_cuda_device(uint32_t ordinal,
                                            DML_CUDA_FEATURE_LEVEL feature_level,
                                            DML_CUDA_DEVICE **device,
                                            DML_CUDA_ERROR **error);
void dml_cuda_destroy_device(DML_CUDA_DEVICE *device);
const char *dml_cuda_device_name(const DML_CUDA_DEVICE *device);
DML_CUDA_FEATURE_LEVEL dml_cuda_device_feature_level(const DML_CUDA_DEVICE *device);
DML_CUDA_STATUS dml_cuda_check_tensor_support(const DML_CUDA_DEVICE *device,
                                              DML_CUDA_OPERATOR_TYPE operator_type,
                                              DML_CUDA_TENSOR_ROLE tensor,
                                              DML_CUDA_TENSOR_SUPPORT *support,
                                              DML_CUDA_ERROR **error);
DML_CUDA_STATUS dml_cuda_validate(const DML_CUDA_OPERATOR_DESC *desc,
                                  DML_CUDA_FEATURE_LEVEL feature_level,
                                  DML_CUDA_ERROR **error);
DML_CUDA_STATUS dml_cuda_validate_as(const DML_CUDA_OPERATOR_DESC *desc,
                                     const char *directml_version,
                                     DML_CUDA_ERROR **error);
DML_CUDA_STATUS dml_cuda_create_operator(const DML_CUDA_DEVICE *device,
                                         const DML_CUDA_OPERATOR_DESC *desc,
                                         DML_CUDA_OPERATOR **operator_,
                                         DML_CUDA_ERROR **error);
void dml_cuda_destroy_operator(DML_CUDA_OPERATOR *operator_);
DML_CUDA_STATUS dml_cuda_compile_operator(const DML_CUDA_DEVICE *device,
                                          const DML_CUDA_OPERATOR *operator_,
                                          const DML_CUDA_COMPILE_OPTIONS *options,
                                          DML_CUDA_COMPILED_OPERATOR **compiled,
                                          DML_CUDA_ERROR **error);
void dml_cuda_destroy_compiled_operator(DML_CUDA_COMPILED_OPERATOR *compiled);
DML_CUDA_STATUS dml_cuda_get_binding_properties(const DML_CUDA_COMPILED_OPERATOR *compiled,
                                                DML_CUDA_BINDING_PROPERTIES *properties,
                                                DML_CUDA_ERROR **error);
DML_CUDA_STATUS dml_cuda_dispatch(const DML_CUDA_COMPILED_OPERATOR *compiled,
                                  const void *const *inputs,
                                  uint32_t input_count,
                                  void *output,
                                  void *stream,
                                  DML_CUDA_ERROR **error);
DML_CUDA_STATUS dml_cuda_explain(const DML_CUDA_OPERATOR *operator_,
                                 const char *target,
                                 char **explanation,
                                 DML_CUDA_ERROR **error);
void dml_cuda_free_string(char *string);
DML_CUDA_STATUS dml_cuda_compile_reversal(const DML_CUDA_DEVICE *device,
                                          const DML_CUDA_ARRAY *input,
                                          const DML_CUDA_ARRAY *lengths,
                                          const DML_CUDA_ARRAY *output,
                                          int32_t axis,
                                          DML_CUDA_COMPILED_OPERATOR **compiled,
                                          DML_CUDA_ERROR **error);
DML_CUDA_STATUS dml_cuda_compile_sequence(const DML_CUDA_DEVICE *device,
                                          const DML_CUDA_ARRAY *output,
                                          DML_CUDA_TENSOR_DATA_TYPE data_type,
                                          const DML_CUDA_SCALAR_UNION *start,
                                          const DML_CUDA_SCALAR_UNION *delta,
                                          DML_CUDA_COMPILED_OPERATOR **compiled,
                                          DML_CUDA_ERROR **error);
#if !defined(_WIN32)
DML_CUDA_STATUS dml_cuda_register_torch(DML_CUDA_ERROR **error);
#endif
DML_CUDA_STATUS dml_cuda_error_status(const DML_CUDA_ERROR *error);
const char *dml_cuda_error_message(const DML_CUDA_ERROR *error);
uint32_t dml_cuda_error_violation_count(const DML_CUDA_ERROR *error);
DML_CUDA_STATUS dml_cuda_error_violation(const DML_CUDA_ERROR *error, uint32_t index, DML_CUDA_VIOLATION *violation);
void dml_cuda_destroy_error(DML_CUDA_ERROR *error);
#ifdef __cplusplus
}
#endif
#endif
