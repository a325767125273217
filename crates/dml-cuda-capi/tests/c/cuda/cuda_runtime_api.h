/* The few declarations of the CUDA runtime that the program in docs/c.md uses, for machines without the toolkit. */
#include <stddef.h>

typedef int cudaError_t;
typedef struct CUstream_st* cudaStream_t;
typedef struct CUgraph_st* cudaGraph_t;
typedef struct CUgraphExec_st* cudaGraphExec_t;

enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal = 1 };
enum cudaMemcpyKind { cudaMemcpyDeviceToHost = 2 };

cudaError_t cudaSetDevice(int device);
cudaError_t cudaStreamCreate(cudaStream_t* stream);
cudaError_t cudaMalloc(void** memory, size_t size);
cudaError_t cudaMemcpy(void* to, const void* from, size_t size, enum cudaMemcpyKind kind);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* replay, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t replay, cudaStream_t stream);
