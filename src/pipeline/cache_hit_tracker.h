// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "engine/shared/completion_json.h"
#include "handoff/request.h"
#include "kvcache/index/index.h"
#include "kvcache/view/kv_cache_view.h"
#include "kvcache/view/prompt_blocks.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace baton::pipeline {

// Role. Follows one prompt into the cache of the worker that computes it: the expected hit, and the
//   hit that the engine reports.
// Confinement. The request's I/O thread.
// Lifetime. Shared by the request's record and its hand-off. Its long parts are freed at the first
//   token, unless the events of the prompt are still on their way then.
class CacheHitTracker : public scheduling::PromptObserver {
 public:
  CacheHitTracker(kvcache::KvCacheView& caches, std::shared_ptr<const kvcache::PromptBlocks> blocks)
      : cache_view_(caches), blocks_(std::move(blocks)) {}

  std::shared_ptr<const scheduling::KnownPrompt> known() const override;
  void computing(const fleet::Booking& booking) override;
  void computed(const std::optional<engine::Usage>& usage) override;
  // The first token is there, or the whole answer.
  void answered();
  // `usage`: as the client gets it.
  void finish(const std::optional<engine::Usage>& usage);

  // Tokens that the worker's events said were cached, when it was chosen.
  std::optional<std::int64_t> predicted() const;

 private:
  kvcache::KvCacheView& cache_view_;
  std::shared_ptr<const kvcache::PromptBlocks> blocks_;
  std::optional<kvcache::Holder> holder_;
  bool answered_ = false;
  bool by_events_ = false;
  bool by_prefill_ = false;  // a worker of its own computed it, and has said what was cached
  std::uint64_t most_ = 0;   // of its tokens that a cache can have
  kvcache::KvCacheView::Computed seen_;
};

}  // namespace baton::pipeline
