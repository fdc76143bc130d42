// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "handoff/request.h"

#include <memory>
#include <utility>
#include <vector>

namespace baton::scheduling {

// A prompt of which everything is known.
class KnownPromptStub : public PromptObserver {
 public:
  static constexpr std::uint32_t kBlock = 16;

  explicit KnownPromptStub(std::uint64_t tokens) {
    std::vector<std::uint64_t> chain;
    for (std::uint64_t i = 0; i < tokens / kBlock; ++i) chain.push_back(1'000'000 + i);
    prompt_->tokens = tokens;
    prompt_->shapes.push_back(
        {kBlock, std::make_shared<const std::vector<std::uint64_t>>(std::move(chain))});
  }
  void cached(const fleet::Worker& worker, std::uint32_t tokens) {
    prompt_->hits.push_back(
        {.key = {worker.id(), 0}, .block_size = kBlock, .device = tokens / kBlock});
  }

  std::shared_ptr<const KnownPrompt> known() const override { return prompt_; }
  void computing(const fleet::Booking&) override {}
  void computed(const std::optional<engine::Usage>&) override {}

 private:
  std::shared_ptr<KnownPrompt> prompt_ = std::make_shared<KnownPrompt>();
};

}  // namespace baton::scheduling
