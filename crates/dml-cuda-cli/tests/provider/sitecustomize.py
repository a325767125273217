"""A stand-in for a library with an execution provider. ONNX Runtime's own CPU provider is the library's, and refuses
Range."""

import onnxruntime as ort

devices, libraries, session = ort.get_ep_devices(), [], ort.InferenceSession
REFUSED = "This session contains graph nodes that are assigned to the default CPU EP, but fallback to CPU EP has been explicitly disabled by the user."


def session_without_range(model, options):
    if b"Range" in model:
        raise RuntimeError(REFUSED)
    return session(model, options)


ort.get_ep_devices = lambda: devices if libraries else []
ort.register_execution_provider_library = lambda name, path: libraries.append(path)
ort.InferenceSession = session_without_range
