// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/cancellation.h"
#include "core/result.h"
#include "engine/shared/dialect.h"
#include "http_client/exchange.h"
#include "http_client/upstream_pool.h"
#include "libs/tokenizer/token.h"
#include "model/version.h"
#include "model/worker.h"
#include "net/cpu_pool.h"
#include "wire/http_message.h"

#include <boost/asio/awaitable.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::engine {

using boost::asio::awaitable;

// Without a tokenizer of its own, Baton can ask the engine that will serve a request for its
// tokens.

// The engine's endpoint. Render takes the request itself; Tokenize takes its prompt, and on SGLang
// the request.
enum class TokenRoute { None, Render, Tokenize };

// vLLM renders from 0.16 on; an unknown release is tried. TensorRT-LLM cannot be asked.
TokenRoute token_route(model::Engine engine, std::optional<model::Version> version);

struct TokenQuestion {
  // A prompt, or several where the engine takes them at once.
  struct Part {
    std::string body;              // what to post; empty where nothing is to be asked
    tokenizer::TokenIds ids = {};  // then these are the answer: the client sent token ids
    std::size_t prompts = 1;
  };
  std::string_view path;
  std::vector<Part> parts;
};

// The question to send. nullopt if the engine's answer would not be exact: it has no such route,
// the prompt is malformed, or the request has fields that the route does not know. Requires:
// nothing makes the request inexact (prompt/exactness.h).
std::optional<TokenQuestion> token_question(const ClientCall& call, model::Engine engine,
                                            TokenRoute route);

// An engine's answer to either: one list of ids for each prompt. EngineProtocol where it is no such
// document or has ids that cannot be; EngineRejected where they stand for more than text (images …).
Result<std::vector<tokenizer::TokenIds>> read_token_ids(const std::string& answer);

struct ToldTokens {
  std::vector<tokenizer::TokenIds> prompts = {};
  // vLLM renders only with --enable-scale-out (0.30): it refused, and its /tokenize answered.
  bool render_refused = false;
};

// Asks a worker, which its own version decides how. A vLLM that does not render after all is asked
// the other way. The authorization in `headers`, those of the client's request, goes along. Each
// question may take what `timeouts` say (see fetch.h), each answer `largest_answer` bytes; none
// outlives `cancellation`, which is then the error.
// EngineRejected where the engine refuses the request (a template's error, a prompt too long) or
// cannot be asked; other errors are those of fetch and read_token_ids. `cpu` makes long questions and
// reads long answers.
// Requires: as token_question.
// `spec`, `call` and `headers` must stay until the answer is there. Confinement. One I/O thread.
awaitable<Result<ToldTokens>> ask_tokens(http_client::UpstreamPool& pool, net::CpuPool& cpu,
                                         http_client::Target target, const model::WorkerSpec& spec,
                                         std::optional<model::Version> version,
                                         const ClientCall& call, const wire::Headers& headers,
                                         http_client::ExchangeTimeouts timeouts,
                                         std::size_t largest_answer, Cancellation& cancellation);

}  // namespace baton::engine
