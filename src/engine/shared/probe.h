// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "engine/shared/introspection.h"
#include "http_client/exchange.h"
#include "http_client/upstream_pool.h"
#include "model/worker.h"

#include <boost/asio/awaitable.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace baton::engine {

using boost::asio::awaitable;

// Asks one worker for its description. It must have model cards, which tell the engine; that
// engine's own documents follow (if the cards do not tell, those of the configured engine): vLLM
// /version and /metrics, SGLang /server_info, TensorRT-LLM /version and /server_info. SGLang is
// also asked for a token that no model has, because the refusal tells the size of its vocabulary;
// vLLM for the tokens of a letter, which it refuses if it was started without its tokenizer. A
// worker may lack those. Facts withheld for want of a key, or by a failed answer, are no error: see
// Facts::unknown_because.
//
// EngineUnreachable: it is not there; EngineTimeout: it is silent; EngineOverloaded: it is not
// ready (503); EngineFailed: another status of the model cards; EngineProtocol: answers that are no
// such documents.
//
// `authorization` is the value of that header, sent with every question; empty: none. It and `spec`
// must stay until the answer is there. Each question may take what `timeouts` say (see fetch.h).
// Confinement. One I/O thread.
awaitable<Result<Facts>> probe(http_client::UpstreamPool& pool, http_client::Target target,
                               const model::WorkerSpec& spec,
                               http_client::ExchangeTimeouts timeouts,
                               std::string_view authorization);

// The same of its model cards alone: adapters come and go. No models where it wants a key.
awaitable<Result<Facts>> probe_models(http_client::UpstreamPool& pool, http_client::Target target,
                                      http_client::ExchangeTimeouts timeouts,
                                      std::string_view authorization);

// Contradictions between the configuration and the engine, each with its remedy in one sentence;
// empty: they agree. `model` is the name that the worker is sent. A fact that the engine does not
// tell contradicts nothing, and neither does data_parallel_size 1: the engine then spreads requests
// over its ranks itself.
std::vector<std::string> contradictions(const std::string& model, const model::WorkerSpec& spec,
                                        const Facts& facts);

}  // namespace baton::engine
