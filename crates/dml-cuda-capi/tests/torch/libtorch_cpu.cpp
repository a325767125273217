// A stand-in for libtorch_cpu.so, for machines without PyTorch: the functions of its C interface that the library uses,
// with tensors on the heap. It counts the handles that live. With TOO_OLD it lacks a function.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

using Kernel = void (*)(uint64_t*, uint64_t, uint64_t);

struct Data {
    std::vector<int64_t> sizes, strides;
    int32_t dtype, device_type, device_index;
    std::vector<char> bytes;
    int version = 0;
    bool requires_grad = false, inference = false;
};
struct Tensor {
    std::shared_ptr<Data> data;
};
struct Library {
    std::string key;
    std::vector<std::string> names;
};

static int live = 0;
static int refusals = 0;
// PyTorch keeps libraries that are not deleted.
static std::list<Library> libraries;
static std::set<std::string> schemas;
static std::map<std::string, Kernel> kernels;

// PyTorch's numbers.
enum { UINT8 = 0, INT32 = 3, INT64 = 4, FLOAT32 = 6, UINT32 = 28, UINT64 = 29, CPU = 0, CUDA = 1 };

static int64_t width(int32_t dtype) {
    return dtype == UINT8 ? 1 : dtype == INT32 || dtype == FLOAT32 || dtype == UINT32 ? 4 : 8;
}

extern "C" {
// For the test.
int stand_in_live() { return live; }
// The next calls that can fail do.
void stand_in_refuse(int calls) { refusals = calls; }
Kernel stand_in_kernel(const char* key_and_name) {
    return kernels.count(key_and_name) ? kernels[key_and_name] : nullptr;
}
Tensor* stand_in_tensor(const int64_t* sizes, const int64_t* strides, int64_t rank, int32_t dtype,
                        int32_t device_type) {
    auto data = std::make_shared<Data>();
    data->sizes.assign(sizes, sizes + rank);
    data->strides.assign(strides, strides + rank);
    data->dtype = dtype, data->device_type = device_type, data->device_index = device_type == CPU ? -1 : 0;
    int64_t elements = 1;
    for (int64_t d = 0; d < rank; ++d)
        elements = sizes[d] == 0 ? 0 : elements + (elements ? (sizes[d] - 1) * strides[d] : 0);
    data->bytes.assign(static_cast<size_t>(elements * width(dtype)), 0);
    ++live;
    return new Tensor{data};
}
Tensor* stand_in_again(Tensor* tensor) {
    ++live;
    return new Tensor{tensor->data};
}

void stand_in_mark(Tensor* tensor, int requires_grad, int inference) {
    tensor->data->requires_grad = requires_grad, tensor->data->inference = inference;
}
int stand_in_version(Tensor* tensor) { return tensor->data->version; }

// Functions of C++: c10::GradMode::is_enabled, c10::TensorImpl::requires_grad, at::_ops::is_inference::call and
// torch::autograd::impl::bump_version, which throws for an inference tensor.
bool _ZN3c108GradMode10is_enabledEv() { return true; }
bool _ZNK3c1010TensorImpl13requires_gradEv(const Data* data) { return data->requires_grad; }
bool _ZN2at4_ops12is_inference4callERKNS_6TensorE(const Tensor* tensor) { return tensor->data->inference; }
void _ZN5torch8autograd4impl12bump_versionERKN2at6TensorE(const Tensor* tensor) {
    if (tensor->data->inference) std::abort();
    ++tensor->data->version;
}

static int refused() { return refusals > 0 && refusals-- > 0 ? 1 : 0; }

int32_t aoti_torch_library_init_fragment(const char* space, const char*, uint32_t, Library** made) {
    if (std::strcmp(space, "dml_cuda") != 0 || refused()) return 1;
    *made = &libraries.emplace_back();
    return 0;
}
int32_t aoti_torch_library_init_impl(const char* space, const char* key, const char*, uint32_t, Library** made) {
    if (std::strcmp(space, "dml_cuda") != 0 || refused()) return 1;
    *made = &libraries.emplace_back(Library{key, {}});
    return 0;
}
int32_t aoti_torch_library_def(Library* library, const char* schema) {
    std::string name(schema, std::strchr(schema, '('));
    if (schemas.count(name) || refused()) return 1;
    schemas.insert(name);
    library->names.push_back(name);
    return 0;
}
#ifndef TOO_OLD
int32_t aoti_torch_library_impl(Library* library, const char* name, Kernel kernel) {
    if (!schemas.count(name) || refused()) return 1;
    kernels[library->key + " " + name] = kernel;
    library->names.push_back(library->key + " " + name);
    return 0;
}
#endif
int32_t aoti_torch_delete_library_object(Library* library) {
    for (auto& name : library->names) schemas.erase(name), kernels.erase(name);
    return 0;
}
int32_t aoti_torch_delete_tensor_object(Tensor* tensor) {
    --live;
    delete tensor;
    return 0;
}
int32_t aoti_torch_get_dim(Tensor* tensor, int64_t* dim) {
    return *dim = static_cast<int64_t>(tensor->data->sizes.size()), 0;
}
int32_t aoti_torch_get_sizes(Tensor* tensor, int64_t** sizes) { return *sizes = tensor->data->sizes.data(), 0; }
int32_t aoti_torch_get_strides(Tensor* tensor, int64_t** strides) { return *strides = tensor->data->strides.data(), 0; }
int32_t aoti_torch_get_dtype(Tensor* tensor, int32_t* dtype) { return *dtype = tensor->data->dtype, 0; }
int32_t aoti_torch_get_device_type(Tensor* tensor, int32_t* type) { return *type = tensor->data->device_type, 0; }
int32_t aoti_torch_get_device_index(Tensor* tensor, int32_t* index) { return *index = tensor->data->device_index, 0; }
int32_t aoti_torch_get_data_ptr(Tensor* tensor, void** data) { return *data = tensor->data->bytes.data(), 0; }
int32_t aoti_torch_empty_strided(int64_t rank, const int64_t* sizes, const int64_t* strides, int32_t dtype,
                                 int32_t device_type, int32_t, Tensor** made) {
    if (refused()) return 1;
    *made = stand_in_tensor(sizes, strides, rank, dtype, device_type);
    return 0;
}
int32_t aoti_torch_new_tensor_handle(Tensor* tensor, Tensor** made) { return *made = stand_in_again(tensor), 0; }
// empty_like of a tensor that is not dense, as one that is packed.
int32_t aoti_torch_call_dispatcher(const char* name, const char* overload, uint64_t* stack) {
    if (std::strcmp(name, "aten::empty_like") != 0 || *overload ||
        std::any_of(stack + 1, stack + 6, [](uint64_t of) { return of; }))
        std::abort();
    Tensor* like = reinterpret_cast<Tensor*>(stack[0]);
    const bool is_refused = refused();
    if (!is_refused) {
        std::vector<int64_t> strides(like->data->sizes.size(), 1);
        for (size_t d = strides.size(); d-- > 1;) strides[d - 1] = strides[d] * like->data->sizes[d];
        stack[0] = reinterpret_cast<uint64_t>(stand_in_tensor(
            like->data->sizes.data(), strides.data(), static_cast<int64_t>(strides.size()), like->data->dtype, CPU));
    }
    aoti_torch_delete_tensor_object(like);
    return is_refused;
}
// Broadcasts as Tensor.copy_ does.
int32_t aoti_torch_copy_(Tensor* to, Tensor* from, int32_t) {
    const auto &sizes = to->data->sizes, &of_from = from->data->sizes;
    const size_t missing = sizes.size() - of_from.size(), size = width(to->data->dtype);
    int64_t count = 1;
    for (int64_t of_dim : sizes) count *= of_dim;
    for (int64_t at = 0; at < count; ++at) {
        int64_t rest = at, target = 0, source = 0;
        for (size_t d = sizes.size(); d-- > 0; rest /= sizes[d]) {
            target += rest % sizes[d] * to->data->strides[d];
            if (d >= missing && of_from[d - missing] != 1) source += rest % sizes[d] * from->data->strides[d - missing];
        }
        std::memcpy(&to->data->bytes[target * size], &from->data->bytes[source * size], size);
    }
    return 0;
}
size_t aoti_torch_dtype_element_size(int32_t dtype) { return static_cast<size_t>(width(dtype)); }
int32_t aoti_torch_device_type_cpu() { return CPU; }
int32_t aoti_torch_device_type_cuda() { return CUDA; }
int32_t aoti_torch_dtype_int32() { return INT32; }
int32_t aoti_torch_dtype_int64() { return INT64; }
int32_t aoti_torch_dtype_uint32() { return UINT32; }
int32_t aoti_torch_dtype_uint64() { return UINT64; }
}
