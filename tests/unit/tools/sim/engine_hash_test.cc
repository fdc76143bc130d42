// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// Block hashes against those that the engines' own rules give, worked out apart from this code.
#include "tools/sim/engine_hash.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace baton::sim {
namespace {

using nlohmann::json;
using Numbers = std::vector<std::uint64_t>;

const std::vector<TokenId> kTokens{1, 2, 3, 4, 100, 1000, 70000, 128000};

// Vectors that no code of Baton's had a part in. `dynamo_router` is the index's: block_hash_test.
const json& vectors() {
  static const json kVectors = json::parse(std::ifstream(BATON_HASH_VECTORS));
  return kVectors;
}

std::string hex(const BlockHash& hash) { return fmt::format("{:02x}", fmt::join(hash, "")); }

struct Chain {
  std::vector<std::string> digests;
  std::vector<std::string> numbers;
};

// `overhang`: how many tokens behind a block belong to it, too.
Chain chain_of(const BlockHasher& hasher, const json& one, const CacheScope& scope,
               const std::vector<std::vector<ItemKey>>& items = {}, std::size_t overhang = 0) {
  const auto tokens = one.at("tokens").get<std::vector<TokenId>>();
  Chain out;
  std::optional<BlockHash> parent;
  for (std::size_t begin = 0; begin + 4 + overhang <= tokens.size(); begin += 4) {
    const auto block = std::span(tokens).subspan(begin, 4 + overhang);
    const std::size_t index = begin / 4;
    parent = hasher.next(parent, block, scope,
                         index < items.size() ? items[index] : std::vector<ItemKey>());
    out.digests.push_back(hex(*parent));
    out.numbers.push_back(fmt::format("{:#018x}", hasher.number(*parent)));
  }
  return out;
}

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

// Texts that every block has are the adapter's, those of the first alone the salt.
CacheScope scope_of(const json& extra_keys) {
  CacheScope scope;
  const auto texts = [&](std::size_t block) {
    std::vector<std::string> out;
    for (const json& key : extra_keys.at(block)) {
      if (key.is_string()) out.push_back(key);
    }
    return out;
  };
  const std::vector<std::string> everywhere = texts(1);
  if (!everywhere.empty()) scope.lora = everywhere.front();
  for (const std::string& text : texts(0)) {
    if (text != scope.lora) scope.salt = text;
  }
  scope.lora_id = scope.lora.empty() ? 0 : 1;
  return scope;
}

std::vector<std::vector<ItemKey>> items_of(const json& extra_keys) {
  std::vector<std::vector<ItemKey>> out;
  for (const json& of_block : extra_keys) {
    auto& items = out.emplace_back();
    for (const json& key : of_block) {
      if (key.is_array()) items.push_back({.id = key.at(0), .offset = key.at(1)});
    }
  }
  return out;
}

TEST(EngineHash, EveryVectorOfTheFileIsSomebodys) {
  std::vector<std::string> sections;
  for (const auto& section : vectors().items()) sections.push_back(section.key());
  EXPECT_EQ(sections, (std::vector<std::string>{"dynamo_router", "sglang",
                                                "tensorrt_llm_v1_block_key", "vllm"}));
}

TEST(EngineHash, EveryVectorOfVllm) {
  const std::map<std::string, HashRule> rules{{"sha256", HashRule::VllmPickle},
                                              {"sha256_cbor", HashRule::VllmCbor}};
  std::map<std::string, int> seen;
  for (const json& one : vectors().at("vllm").at("cases")) {
    const std::string algo = one.at("algo");
    SCOPED_TRACE(fmt::format("{} seed {} {}", algo, one.at("seed").get<std::string>(),
                             one.at("case").get<std::string>()));
    const auto rule = rules.find(algo);
    if (rule == rules.end()) {
      ADD_FAILURE() << "nobody computes it";
      continue;
    }
    BlockHasher hasher(rule->second);
    hasher.seed(one.at("seed").get<std::string>());
    const json& keys = one.at("extra_keys");
    const Chain hashes = chain_of(hasher, one, scope_of(keys), items_of(keys));
    EXPECT_EQ(hashes.digests, one.at("digests").get<std::vector<std::string>>());
    EXPECT_EQ(hashes.numbers, one.at("event_u64").get<std::vector<std::string>>());
    ++seen[algo];
  }
  EXPECT_EQ(seen, (std::map<std::string, int>{{"sha256", 6}, {"sha256_cbor", 15}}));
}

TEST(EngineHash, EveryVectorOfSglang) {
  int seen = 0;
  for (const json& one : vectors().at("sglang").at("cases")) {
    const std::string name = one.at("case");
    SCOPED_TRACE(name);
    BlockHasher hasher(HashRule::Sglang);
    const bool pairs = name == "bigram";
    if (pairs) hasher.hash_pairs();
    const json& salt = one.at("salt");
    const CacheScope scope{.salt = salt.is_null() ? std::string() : salt.get<std::string>()};
    const Chain hashes = chain_of(hasher, one, scope, {}, pairs ? 1 : 0);
    EXPECT_EQ(hashes.digests, one.at("digests").get<std::vector<std::string>>());
    EXPECT_EQ(hashes.numbers, one.at("event_u64").get<std::vector<std::string>>());
    ++seen;
  }
  EXPECT_EQ(seen, 3);
}

TEST(EngineHash, EveryVectorOfTrtllm) {
  int seen = 0;
  for (const json& one : vectors().at("tensorrt_llm_v1_block_key").at("cases")) {
    const std::string name = one.at("case");
    SCOPED_TRACE(name);
    CacheScope scope{.salt = one.value("salt", "")};
    if (name == "lora-7-first-block") {
      scope.lora = "a";
      scope.lora_id = 7;
    }
    const BlockHasher hasher(HashRule::TrtllmV1);
    EXPECT_EQ(chain_of(hasher, one, scope).numbers, one.at("u64").get<std::vector<std::string>>());
    ++seen;
  }
  EXPECT_EQ(seen, 3);
}

// What no vector has, from `hashlib.sha256(pickle.dumps((parent, tokens, keys), protocol=5))` of
// CPython 3.11 behind the seed 42, with each text decoded on its own.
TEST(EngineHash, VllmPicklesWhatIsLargeOrRepeated) {
  BlockHasher hasher(HashRule::VllmPickle);
  hasher.seed("42");
  const auto number = [&](std::vector<TokenId> tokens, const CacheScope& scope,
                          const std::vector<ItemKey>& items = {}) {
    return hasher.number(hasher.next({}, tokens, scope, items));
  };
  const auto from = [](std::size_t count) {
    std::vector<TokenId> tokens(count);
    std::iota(tokens.begin(), tokens.end(), 70000U);
    return tokens;
  };
  EXPECT_EQ(number(from(30000), {}), 0x4640276749c8c0a7U);
  EXPECT_EQ(number(from(4), {.salt = std::string(300, 's')}), 0xb5de3bb4165992c5U);
  EXPECT_EQ(number(from(4), {.salt = std::string(70000, 's')}), 0x33f0da30f807c401U);
  EXPECT_EQ(number({0x80000000U, 0xFFFFFFFFU}, {}), 0xf65163f304d014b6U);
  EXPECT_EQ(number(from(3), {.lora = "a", .lora_id = 1, .salt = "a"},
                   {{.id = "id", .offset = -2}, {.id = "id", .offset = 300}}),
            0x460a63bb1a928035U);
  hasher.name_adapters_by_number();
  EXPECT_EQ(number({1, 2, 3, 4}, {.lora = "a", .lora_id = 1}), 0x9ea659298c796779U);
}

// What SGLang's hashes do not show still separates its cache.
TEST(EngineHash, KeysTellScopesApartWhereHashesDoNot) {
  const auto tokens = std::span(kTokens).first(4);
  for (const char* version : {"0.5.17", "0.5.18", "0.5.23"}) {
    Options options;
    options.engine = model::Engine::Sglang;
    options.version = version;
    options.kv.events = "tcp://127.0.0.1:0";
    const BlockHasher hasher = BlockHasher::of(options);
    const std::vector<CacheScope> scopes{{},
                                         {.lora = "a", .lora_id = 1},
                                         {.lora = "b", .lora_id = 2},
                                         {.salt = "s"},
                                         {.salt = "t"},
                                         {.key = "s"},
                                         {.key = "t"}};
    for (std::size_t i = 0; i < scopes.size(); ++i) {
      const BlockHash one = hasher.next({}, tokens, scopes[i]);
      const bool salt_told = !scopes[i].salt.empty() && options.version != "0.5.17";
      const bool adapter_told = !scopes[i].lora.empty() && options.version == "0.5.23";
      EXPECT_EQ(one == hasher.next({}, tokens, {}), !salt_told && !adapter_told);
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
  options.kv.hash_pickle = true;
  EXPECT_EQ(chain(BlockHasher::of(options), kTokens),
            (Numbers{0x0902fcecc2422367, 0x9f720a9bd4195433}));
}

}  // namespace
}  // namespace baton::sim
