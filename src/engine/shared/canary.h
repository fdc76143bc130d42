// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "http_client/exchange.h"
#include "http_client/upstream_pool.h"
#include "model/worker.h"

#include <boost/asio/awaitable.hpp>

#include <string>
#include <string_view>

namespace baton::engine {

using boost::asio::awaitable;

enum class CanaryOutcome {
  Served,      // a token came back
  PushedBack,  // 429 or 503: it is there, and has no room now
  KeyRefused,  // 401 or 403: it is there, and does not serve without a key that was not given
};

// Sends a tiny real request: it notices a model that no longer answers, which /health may miss. An
// error means that the worker failed it.
//
// Mostly POST /v1/completions for one token of a two-letter prompt. vLLM serves it in any role, and
// so does TensorRT-LLM: without disaggregated_params, context and generation servers do both
// phases. SGLang's prefill and decode workers refuse every request without a room. They get GET
// /health_generate, for which the engine makes a request of its own that waits for no peer. Its 503
// is no push-back: no token came for 20 s, or the worker starts or drains.
//
// The engine chooses the data-parallel rank: only one is tried.
//
// `authorization` as for probe(). The arguments must stay until the answer is there.
// Confinement. One I/O thread.
awaitable<Result<CanaryOutcome>> send_canary(http_client::UpstreamPool& pool,
                                             http_client::Target target, const std::string& model,
                                             const model::WorkerSpec& spec,
                                             http_client::ExchangeTimeouts timeouts,
                                             std::string_view authorization = {});

}  // namespace baton::engine
