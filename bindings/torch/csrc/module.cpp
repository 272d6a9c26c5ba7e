// SPDX-License-Identifier: BSD-3-Clause
// The Python module dscomm_torch._C.
#include "backend.hpp"

#include "compression.hpp"
#include "error.hpp"
#include "poller.hpp"

#include <dscomm/env.h>
#include <map>
#include <memory>
#include <pybind11/chrono.h>
#include <pybind11/stl.h>
#include <string>
#include <torch/csrc/jit/python/pybind_utils.h>
#include <torch/python.h>

namespace
{

c10::intrusive_ptr<c10d::Backend>
create_backend(const c10d::DistributedBackendOptions &options)
{
    return c10::make_intrusive<dscomm_torch::Backend>(
        options.store, options.group_rank, options.group_size,
        std::chrono::duration_cast<std::chrono::milliseconds>(options.timeout),
        options.group_id);
}

using Env = std::unique_ptr<dscomm_env_t, void (*)(dscomm_env_t *)>;

// This process and its job, by whatever launcher has started it.
Env discover()
{
    dscomm_env_t *env = nullptr;

    dscomm_torch::check(dscomm_env_discover(nullptr, &env));
    return {env, dscomm_env_free};
}

// The variables of torch's "env://" for this process. A rank alone has no peers
// that must know the port: 0 is any.
std::map<std::string, std::string> environment()
{
    const Env owner = discover();
    const dscomm_env_t *env = owner.get();
    const int port = dscomm_env_master_port(env);
    const bool alone = dscomm_env_world_size(env) == 1 && port < 0;
    const char *warning;

    for (size_t i = 0; (warning = dscomm_env_warning(env, i)); i++)
        TORCH_WARN("dscomm: ", warning);
    if (!alone)
        dscomm_torch::check(dscomm_env_check_master(env));
    return {{"RANK", std::to_string(dscomm_env_rank(env))},
            {"WORLD_SIZE", std::to_string(dscomm_env_world_size(env))},
            {"LOCAL_RANK", std::to_string(dscomm_env_local_rank(env))},
            {"LOCAL_WORLD_SIZE", std::to_string(dscomm_env_local_size(env))},
            {"MASTER_ADDR", dscomm_env_master_addr(env)},
            {"MASTER_PORT", std::to_string(alone ? 0 : port)}};
}

// The launcher that has started this process, as dscomm names it; "" if none.
std::string launcher()
{
    return dscomm_env_source(discover().get());
}

// The first tensor of a work's result, as an object of Python's, which is what
// hooks return. An exception stays what it is, while a callback of Python's
// would wrap it.
std::shared_ptr<torch::jit::PythonFutureWrapper>
tensor_future(const c10::intrusive_ptr<c10d::Work> &work)
{
    const auto first = [](c10::ivalue::Future &done) -> c10::IValue {
        const at::Tensor tensor = done.value().toTensorVector().front();
        const pybind11::gil_scoped_acquire locked;
        return torch::jit::toIValue(py::cast(tensor), c10::PyObjectType::get());
    };

    return std::make_shared<torch::jit::PythonFutureWrapper>(
        work->getFuture()->then(first, c10::PyObjectType::get()));
}

void define_compressor(py::module_ &module)
{
    using dscomm_torch::Compressor;
    const py::call_guard<py::gil_scoped_release> unlocked;
    py::class_<Compressor> type(module, "Compressor");

    type.def(py::init<const c10::intrusive_ptr<c10d::Backend> &, size_t,
                      const std::string &, bool, bool, double>(),
             py::arg("backend"), py::arg("count"), py::arg("codec"),
             py::arg("feedback"), py::arg("deepspeed"), py::arg("parameter"),
             unlocked);
    type.def("all_reduce", &Compressor::all_reduce, unlocked);
    type.def("save", &Compressor::save, unlocked);
    type.def("load", &Compressor::load, unlocked);
    type.def_property_readonly("count", &Compressor::count);
    type.def_property_readonly("wire_bytes", &Compressor::wire_bytes);
}

} // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module)
{
    module.def("create_backend", &create_backend,
               py::call_guard<py::gil_scoped_release>());
    module.def("environment", &environment);
    module.def("launcher", &launcher);
    module.def("tensor_future", &tensor_future,
               py::call_guard<py::gil_scoped_release>());
    module.def(
        "finish", [] { dscomm_torch::Poller::settle(/*for_ever=*/true); },
        py::call_guard<py::gil_scoped_release>());
    define_compressor(module);
}
