// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// Block hashes against those that the engines' own rules give, worked out apart from this code.
#include "sim/engine_hash.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

namespace baton::sim {
namespace {

using Numbers = std::vector<std::uint64_t>;

const std::vector<TokenId> kTokens{1, 2, 3, 4, 100, 1000, 70000, 128000};

// The chain over blocks of four tokens.
Numbers chain(const BlockHasher& hasher, std::span<const TokenId> tokens,
              const CacheScope& scope = {}) {
  Numbers out;
  std::optional<BlockHash> parent;
  for (std::size_t begin = 0; begin + 4 <= tokens.size(); begin += 4) {
    parent = hasher.next(parent, tokens.subspan(begin, 4), scope);
    out.push_back(hasher.number(*parent));
  }
  return out;
}

struct VllmCase {
  const char* seed;
  CacheScope scope;
  Numbers expected;
};

TEST(EngineHash, VllmIsSha256OverCbor) {
  const CacheScope lora{.lora = "adapter-a", .lora_id = 1};
  const CacheScope salt{.salt = "tenant-salt"};
  const CacheScope both{.lora = "adapter-a", .lora_id = 1, .salt = "tenant-salt"};
  const std::vector<VllmCase> cases{
      {"vllm-none-hash", {}, {0x84b146b151d55111, 0x6b07f5dea82c26ca}},
      {"vllm-none-hash", lora, {0x000fc02e449f18ab, 0x5e7771a2b58349e9}},
      {"vllm-none-hash", salt, {0xd6feaad549f4b6c3, 0xc535ad36b2dc3256}},
      {"vllm-none-hash", both, {0x64e127a95e4a8af4, 0x1f58254b686b7efa}},
      {"0", {}, {0x1e0b2e028ef071cb, 0x196d36b5af0aa576}},
      {"0", lora, {0x2af7cc4e83d85ac1, 0x68809cab96ab1d13}},
      {"0", salt, {0xb661d66cfa089359, 0x6a4779511e3c330c}},
      {"42", {}, {0x5319d4d1d84429df, 0x02dd2f3209f9ba45}},
      {"42", both, {0x67bbcfff6b43e587, 0x71ace1fc95892588}},
  };
  for (const VllmCase& one : cases) {
    BlockHasher hasher(HashRule::VllmCbor);
    hasher.seed(one.seed);
    EXPECT_EQ(chain(hasher, kTokens, one.scope), one.expected) << one.seed;
  }
}

TEST(EngineHash, SglangIsSha256OverTheTokens) {
  const BlockHasher hasher(HashRule::Sglang);
  EXPECT_EQ(chain(hasher, kTokens), (Numbers{0xcf97adeedb59e05b, 0x8b6f8a9acf8a20dd}));
  EXPECT_EQ(chain(hasher, kTokens, {.salt = "tenant-a"}),
            (Numbers{0x339927f491605c4b, 0x9bcb7744faed6d1c}));
}

TEST(EngineHash, TrtllmIsItsOwnMix) {
  const BlockHasher hasher(HashRule::TrtllmV1);
  EXPECT_EQ(chain(hasher, kTokens), (Numbers{0x0003488f88096b5f, 0x25d345d38c8c60e9}));
  const auto first = std::span(kTokens).first(4);
  EXPECT_EQ(chain(hasher, first, {.lora = "a", .lora_id = 7}), (Numbers{0x13826ea675a5e03b}));
  EXPECT_EQ(chain(hasher, first, {.salt = "tenant-a"}), (Numbers{0x7c5d02c3d3840573}));
}

// What SGLang's hashes do not show still separates its cache.
TEST(EngineHash, KeysTellScopesApartWhereHashesDoNot) {
  const auto tokens = std::span(kTokens).first(4);
  for (const char* version : {"0.5.17", "0.5.18"}) {
    Options options;
    options.engine = model::Engine::Sglang;
    options.version = version;
    options.kv.events = "tcp://127.0.0.1:0";
    const BlockHasher hasher = BlockHasher::of(options);
    const std::vector<CacheScope> scopes{
        {}, {.lora = "a", .lora_id = 1}, {.lora = "b", .lora_id = 2}, {.salt = "s"}, {.salt = "t"}};
    for (std::size_t i = 0; i < scopes.size(); ++i) {
      const BlockHash one = hasher.next({}, tokens, scopes[i]);
      EXPECT_EQ(one == hasher.next({}, tokens, {}),
                scopes[i].salt.empty() || options.version == "0.5.17");
      for (std::size_t j = 0; j < i; ++j) {
        EXPECT_NE(hasher.key(one, scopes[i]),
                  hasher.key(hasher.next({}, tokens, scopes[j]), scopes[j]));
      }
    }
  }
}

TEST(EngineHash, VllmWithoutASeedHashesDifferentlyInEachEngine) {
  Options options;
  options.kv.events = "tcp://127.0.0.1:0";
  EXPECT_NE(chain(BlockHasher::of(options), kTokens), chain(BlockHasher::of(options), kTokens));
  options.kv.hash_seed = "42";
  EXPECT_EQ(chain(BlockHasher::of(options), kTokens),
            (Numbers{0x5319d4d1d84429df, 0x02dd2f3209f9ba45}));
}

}  // namespace
}  // namespace baton::sim
