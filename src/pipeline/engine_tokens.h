// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "engine/upstream_pool.h"
#include "fleet/model.h"
#include "handoff/job.h"
#include "prompt/tokenizer/segment_cache.h"
#include "prompt/tokenizer/token.h"

#include <boost/asio/awaitable.hpp>

#include <cstddef>
#include <memory>
#include <vector>

namespace baton::pipeline {

using boost::asio::awaitable;

// Role. Asks a model's workers for the tokens of prompts, and remembers what they said.
// Confinement. One I/O thread; the memory is shared with others.
// Lifetime. A worker that is asked is held until it has answered.
class EngineTokens {
 public:
  EngineTokens(engine::UpstreamPool& pool, std::size_t largest_answer)
      : pool_(pool), largest_answer_(largest_answer) {}

  // `memory` is of this model and no other.
  awaitable<Result<std::vector<prompt::TokenIds>>> ask(const handoff::Job& job,
                                                       prompt::SegmentCache& memory);

 private:
  engine::UpstreamPool& pool_;
  std::size_t largest_answer_;
};

// Whom to ask: the healthiest, and of them the one with the least to do; those that compute prompts
// first. Null where nobody is there that could be asked.
std::shared_ptr<fleet::Worker> worker_to_ask(const fleet::Model& model);

// All of a request that its tokens depend on, as text.
std::string prompt_key(engine::Api api, const wire::JsonObject& body);

}  // namespace baton::pipeline
