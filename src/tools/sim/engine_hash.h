// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "tools/sim/options.h"

#include <openssl/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace baton::sim {

// Identity of a block: its tokens and all before them. A number fills the first eight bytes.
using BlockHash = std::array<std::uint8_t, 32>;

// Separates parts of the cache, beside the tokens.
struct CacheScope {
  std::string lora = {};      // an adapter's name; empty: none
  std::uint32_t lora_id = 0;  // its number, from 1 on
  std::string salt = {};
  std::string key = {};  // SGLang's extra_key
  bool operator==(const CacheScope&) const = default;
};

// An image or the like among a block's tokens, as vLLM has it in its hash.
struct ItemKey {
  std::string id;
  std::int64_t offset = 0;  // of its first token, from the block's first one
};

enum class HashRule {
  VllmCbor,    // SHA-256 over CBOR: vLLM's `sha256_cbor`
  VllmPickle,  // SHA-256 over Python's pickle: vLLM's `sha256`
  Sglang,      // SHA-256 over the tokens
  TrtllmV1,    // a 64-bit mix, the cheapest
};

constexpr bool is_vllm(HashRule rule) {
  return rule == HashRule::VllmCbor || rule == HashRule::VllmPickle;
}

// The number that events give in place of a hash.
std::uint64_t hash_number(HashRule rule, const BlockHash& hash);

// Role. Chains of block hashes as the engines make them.
// Confinement. One thread.
// Lifetime. Owned by a rank.
// Invariants. Equal tokens behind equal ones in an equal scope have equal hashes, and an equal key.
class BlockHasher {
 public:
  explicit BlockHasher(HashRule rule = HashRule::TrtllmV1);
  ~BlockHasher();
  BlockHasher(BlockHasher&&) noexcept;
  BlockHasher& operator=(BlockHasher&&) noexcept;

  // The hasher of the options' engine and release. If no hash is ever reported: the cheapest one.
  static BlockHasher of(const Options& options);

  // vLLM: where its chains begin, made of PYTHONHASHSEED; without it of something random.
  void seed(std::string_view text);
  // vLLM up to 0.11 knows adapters by number.
  void name_adapters_by_number() { lora_by_number_ = true; }
  // SGLang before 0.5.18: a salt separates the cache and is in no hash.
  void leave_salt_out() { salt_in_hash_ = false; }
  // SGLang from 0.5.23 on: what is told of an adapter's blocks has other names.
  void tell_adapters_apart() { adapter_in_hash_ = true; }
  // SGLang with EAGLE: blocks of pairs of neighbours, so a block comes with the token behind it.
  void hash_pairs() { pairs_ = true; }

  // Hash of a block behind `parent`, which is none for the first of a sequence. `items` count with
  // vLLM.
  BlockHash next(const std::optional<BlockHash>& parent, std::span<const TokenId> tokens,
                 const CacheScope& scope, std::span<const ItemKey> items = {}) const;
  // The block's key in the cache: unlike the hash it always separates scopes.
  std::uint64_t key(const BlockHash& hash, const CacheScope& scope) const;
  std::uint64_t number(const BlockHash& hash) const { return hash_number(rule_, hash); }

 private:
  struct FreeContext {
    void operator()(EVP_MD_CTX* context) const;
  };

  BlockHash sha256(std::initializer_list<std::span<const std::uint8_t>> parts) const;
  // vLLM's input: the previous hash, the tokens, and everything else that separates the block.
  template <class Writer>
  void write_vllm(Writer& out, const std::optional<BlockHash>& parent,
                  std::span<const TokenId> tokens, const CacheScope& scope,
                  std::span<const ItemKey> items) const;
  BlockHash next_vllm(const std::optional<BlockHash>& parent, std::span<const TokenId> tokens,
                      const CacheScope& scope, std::span<const ItemKey> items) const;
  BlockHash next_sglang(const std::optional<BlockHash>& parent, std::span<const TokenId> tokens,
                        const CacheScope& scope) const;
  BlockHash next_trtllm(const std::optional<BlockHash>& parent, std::span<const TokenId> tokens,
                        const CacheScope& scope) const;

  HashRule rule_;
  bool lora_by_number_ = false;
  bool salt_in_hash_ = true;
  bool adapter_in_hash_ = false;
  bool pairs_ = false;
  BlockHash none_{};
  std::unique_ptr<EVP_MD_CTX, FreeContext> context_;
};

}  // namespace baton::sim
