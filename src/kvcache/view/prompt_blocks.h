// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvcache/index/block_hash.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace baton::kvcache {

// How the workers of a model cut and distinguish blocks.
struct HashPlan {
  std::vector<BlockShape> shapes;  // none: no hashes are needed
  std::string lora;                // the adapter that the model is; empty: none
  bool operator==(const HashPlan&) const = default;
};

// A prompt in the form of its workers' caches.
struct PromptBlocks {
  struct Hashes {
    BlockShape shape;
    std::vector<SequenceHash> sequence;
  };
  std::vector<Hashes> by_shape;
  std::size_t tokens = 0;
  bool salted = false;  // see PromptScope
  bool keyed = false;
  bool adapted = false;  // its model is an adapter, which old SGLang's events do not report

  std::size_t bytes() const;
};

// Sets a request's blocks apart from those of others with the same tokens.
struct PromptScope {
  std::string salt;  // cache_salt
  // Other keys, which no event reports: SGLang's extra_key, and adapters that the request names
  // beside its model.
  std::string key;
};

PromptBlocks hash_prompt(const HashPlan& plan, std::span<const TokenId> tokens,
                         const PromptScope& scope);
inline PromptBlocks hash_prompt(const HashPlan& plan, std::span<const TokenId> tokens,
                                std::string_view salt) {
  return hash_prompt(plan, tokens, PromptScope{.salt = std::string(salt), .key = {}});
}

// How many blocks of a prompt of so many tokens an engine can take out of its cache: it always
// computes the last token.
std::size_t reusable_blocks(std::size_t tokens, BlockShape shape);

}  // namespace baton::kvcache
