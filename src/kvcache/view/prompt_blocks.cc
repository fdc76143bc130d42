// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/view/prompt_blocks.h"

namespace baton::kvcache {

PromptBlocks hash_prompt(const HashPlan& plan, std::span<const TokenId> tokens,
                         const PromptScope& scope) {
  PromptBlocks blocks{.by_shape = {},
                      .tokens = tokens.size(),
                      .salted = !scope.salt.empty(),
                      .keyed = !scope.key.empty(),
                      .adapted = !plan.lora.empty()};
  // No event has such a salt, so no reported block matches the prompt.
  const std::string salt = blocks.keyed ? scope.salt + '\0' + scope.key : scope.salt;
  const std::uint64_t seed = seed_of({.lora = plan.lora, .salt = salt});
  blocks.by_shape.reserve(plan.shapes.size());
  for (const BlockShape shape : plan.shapes)
    blocks.by_shape.push_back({shape, sequence_hashes(tokens, shape, seed)});
  return blocks;
}

std::size_t PromptBlocks::bytes() const {
  std::size_t bytes = 0;
  for (const Hashes& one : by_shape) bytes += one.sequence.size() * sizeof(SequenceHash);
  return bytes;
}

std::size_t reusable_blocks(std::size_t tokens, BlockShape shape) {
  const std::size_t kept_back = shape.bigram ? 2 : 1;
  return tokens < kept_back ? 0 : (tokens - kept_back) / shape.size;
}

}  // namespace baton::kvcache
