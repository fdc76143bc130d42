// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "http_client/exchange.h"
#include "http_client/upstream_pool.h"
#include "model/worker.h"

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

namespace baton::engine {

using boost::asio::awaitable;

// The number of requests on the worker, running and waiting, over all its ranks: from /metrics of
// vLLM, /v1/loads of SGLang, and /metrics of older ones. nullopt if it does not tell, like
// TensorRT-LLM, whose figures are those of its last iteration. An error means that the worker could
// not be asked.
//
// `spec` must stay until the answer is there. Confinement. One I/O thread.
awaitable<Result<std::optional<std::uint64_t>>> count_requests(
    http_client::UpstreamPool& pool, http_client::Target target, const model::WorkerSpec& spec,
    http_client::ExchangeTimeouts timeouts);

// GET /metrics of vLLM and SGLang; nullopt where no series tells.
std::optional<std::uint64_t> read_requests_of_metrics(std::string_view text, model::Engine engine);
// Reads GET /v1/loads of SGLang; nullopt for any other document.
std::optional<std::uint64_t> read_requests_of_loads(std::string_view json);

}  // namespace baton::engine
