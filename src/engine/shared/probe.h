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

// Asks one worker what it is. First its model cards, which it must have; they tell which engine it
// is, and that one's own documents follow (where they do not tell, those of the configured
// engine): vLLM /version and /metrics, SGLang /server_info, TensorRT-LLM /version and /server_info.
// SGLang is also asked for a token that no model has, for its refusal tells how many its own has;
// vLLM for the tokens of a letter, which it refuses where it was started without its tokenizer.
// A worker may lack those. What it keeps to itself, because it wants a key or fails to answer, is
// no error but told in Facts::unknown_because.
//
// EngineUnreachable where it is not there, EngineTimeout where it is silent, EngineOverloaded where
// it is not ready (503), EngineFailed for other statuses of the model cards, EngineProtocol for
// answers that are no such documents.
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

// What the configuration says and the engine denies, and what to do about it, one sentence each;
// empty: they agree. `model` is the name that the worker is sent. What the engine does not tell
// contradicts nothing, and neither does data_parallel_size 1: the engine then spreads requests over
// its ranks itself.
std::vector<std::string> contradictions(const std::string& model, const model::WorkerSpec& spec,
                                        const Facts& facts);

}  // namespace baton::engine
