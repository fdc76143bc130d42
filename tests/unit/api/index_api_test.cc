// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "api/index_api.h"

#include "support/io_fixture.h"
#include "unit/api/answer_recorder.h"
#include "unit/api/cache_fixture.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <numeric>
#include <vector>

namespace baton::api {
namespace {

using kvcache::FeedHealth;
using kvcache::FeedPlan;
using kvcache::Tier;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Json = nlohmann::json;

using Tokens = std::vector<kvcache::TokenId>;

Tokens tokens_to(std::size_t count) {
  Tokens tokens(count);
  std::iota(tokens.begin(), tokens.end(), 1);
  return tokens;
}

struct IndexApiTest : test::IoFixture, CacheFixture {
  int call(const std::string& method, const std::string& target, const std::string& body = "") {
    answer = {};
    run([&]() -> awaitable<void> { co_await call_route(routes, method, target, body, answer); });
    return answer.status;
  }
  Json json() const { return Json::parse(answer.body); }
  Json show(const std::string& query = "") {
    EXPECT_EQ(call("GET", "/v1/index" + query), 200) << answer.body;
    return json();
  }
  // A worker of the name and how many tokens of the prompt it has, each.
  std::vector<std::string> holders(const Tokens& tokens, const Json& more = {{"model", "m"}}) {
    Json body = more;
    body["tokens"] = tokens;
    EXPECT_EQ(call("POST", "/v1/index/match", body.dump()), 200) << answer.body;
    EXPECT_EQ(json()["tokens"], tokens.size());
    std::vector<std::string> found;
    for (const Json& one : json()["matches"]) {
      found.push_back(fmt::format("{}/{}: {}", one["worker"].get<std::string>(),
                                  one["rank"].get<int>(), one["cached_tokens"].get<int>()));
    }
    return found;
  }
  std::string refused(const std::string& body, int status = 400) {
    EXPECT_EQ(call("POST", "/v1/index/match", body), status) << answer.body;
    return json()["error"]["message"];
  }
  void report(const std::shared_ptr<kvcache::Cache>& cache, FeedPlan plan = {},
              std::optional<kvcache::FeedStatus> status = {}) {
    reports.push_back({.cache = cache, .plan = std::move(plan), .status = std::move(status)});
  }
  std::vector<std::string> names(const Json& index) {
    std::vector<std::string> found;
    for (const Json& one : index["caches"]) {
      found.push_back(fmt::format("{} {}/{}", one["model"].get<std::string>(),
                                  one["worker"].get<std::string>(), one["rank"].get<int>()));
    }
    return found;
  }

  std::vector<kvcache::Feeds::Report> reports;
  IndexContext context{.fleet = fleet, .caches = caches, .reports = [this] { return reports; }};
  http::Routes routes{index_routes(context)};
  AnswerRecorder answer;
};

TEST_F(IndexApiTest, IsForOperatorsOnly) {
  for (const http::Route& route : index_routes(context))
    EXPECT_EQ(route.access, http::Access::Operator) << route.method << " " << route.path;
}

TEST_F(IndexApiTest, KnowsNothingAtFirst) {
  const Json index = show();
  EXPECT_EQ(index["source"], "auto");
  EXPECT_EQ(index["limit"], 5000);
  EXPECT_EQ(index["blocks"], 0);
  EXPECT_EQ(index["memberships"], 0);
  EXPECT_GE(index["bytes"], 0);
  EXPECT_EQ(index["caches"], Json::array());
}

TEST_F(IndexApiTest, TellsHowAFeedIs) {
  const auto worker = add_worker("w", "m", 2);
  const auto cache = add_cache(*worker, 1);
  store(*cache, tokens_to(12), 3);
  store(*cache, tokens_to(4), 1, Tier::Host);
  cache->compare({.least = 8, .most = 8, .reported = 12});
  kvcache::FeedStatus status;
  status.state = kvcache::FeedState::Gap;
  status.position = {.sequence = 41, .payload_hash = 0};
  status.last_batch = kvcache::Clock::now();
  status.lag = std::chrono::microseconds(1500);
  status.gaps = 1;
  status.lost = 2;
  status.replayed = 3;
  status.duplicates = 4;
  status.restarts = 5;
  status.tally.batches = 6;
  status.tally.malformed_batches = 7;
  status.tally.events = 8;
  status.tally.skipped[static_cast<std::size_t>(kvcache::Skipped::Owned)] = 9;
  report(cache,
         {.way = FeedPlan::Way::Subscribe,
          .events = "tcp://127.0.0.1:6",
          .replay = "tcp://127.0.0.1:7",
          .topic = "",
          .block_size = {}},
         status);
  Json index = show();
  EXPECT_EQ(index["blocks"], 3);
  EXPECT_EQ(index["memberships"], 3);
  EXPECT_GT(index["bytes"], 0);
  ASSERT_EQ(index["caches"].size(), 1U);
  Json& one = index["caches"][0];
  EXPECT_GE(one["seconds_since_last"], 0.0);
  EXPECT_LT(one["seconds_since_last"], 60.0);
  EXPECT_GT(one["bytes"], 0);
  EXPECT_GT(one["truth"]["wrong"], 0.0);
  EXPECT_LE(one["truth"]["wrong"], 1.0);
  one.erase("seconds_since_last");
  one.erase("bytes");
  one["truth"].erase("wrong");
  EXPECT_EQ(one, Json::parse(R"({
    "worker":"w","number":1,"url":"http://127.0.0.1:1","model":"m","role":"prefill",
    "engine":"vllm","rank":1,"block_size":4,"bigram":false,"source":"events","feed":"live","reason":null,
    "believed":true,"endpoint":"tcp://127.0.0.1:6","replay":"tcp://127.0.0.1:7",
    "way":"subscribe","state":"gap","sequence":41,"lag_ms":1.5,"batches":6,"events":8,"gaps":1,
    "lost":2,"replayed":3,"duplicates":4,"restarts":5,"malformed_batches":7,
    "skipped":{"owned":9},"blocks":{"device":3,"host":1,"disk":0,"external":0},
    "truth":{"samples":1,"predicted_tokens":8,"reported_tokens":12}})"));
}

TEST_F(IndexApiTest, TellsOfACacheWithoutAFeedToo) {
  const auto cache = add_cache(*add_worker("w"), 0, "m", {.size = 8, .bigram = true});
  cache->set_health(FeedHealth::None);
  report(cache);
  const Json one = show()["caches"][0];
  EXPECT_EQ(one["source"], "decisions");
  EXPECT_EQ(one["feed"], "none");
  EXPECT_EQ(one["way"], "none");
  EXPECT_EQ(one["bigram"], true);
  for (const char* unknown :
       {"endpoint", "replay", "state", "sequence", "seconds_since_last", "lag_ms"})
    EXPECT_TRUE(one.at(unknown).is_null()) << unknown;
  EXPECT_EQ(one["batches"], 0);
  EXPECT_EQ(one["skipped"], Json::object());
}

TEST_F(IndexApiTest, SaysWhomNobodyBelieves) {
  const auto cache = add_cache(*add_worker("w"));
  for (int i = 0; i < 100; ++i) cache->compare({.least = 0, .most = 0, .reported = 1000});
  report(cache);
  const Json one = show()["caches"][0];
  EXPECT_EQ(one["believed"], false);
  EXPECT_EQ(one["source"], "nothing");
  EXPECT_EQ(one["feed"], "live");
}

TEST_F(IndexApiTest, ListsByModelNameAndRank) {
  const auto z = add_worker("z");
  const auto a = add_worker("a", "m", 2);
  const auto other = add_worker("b", "n");
  report(add_cache(*other, 0, "n"));
  report(add_cache(*a, 1));
  report(add_cache(*z));
  report(add_cache(*a, 0));
  EXPECT_THAT(names(show()), ElementsAre("m a/0", "m a/1", "m z/0", "n b/0"));
  EXPECT_THAT(names(show("?model=n")), ElementsAre("n b/0"));
  EXPECT_THAT(names(show("?model=also-m")), ElementsAre("m a/0", "m a/1", "m z/0"));
  EXPECT_THAT(names(show("?model=nobody")), IsEmpty());
}

TEST_F(IndexApiTest, LeavesOutAWorkerThatHasGone) {
  const auto worker = add_worker("w");
  report(add_cache(*worker));
  admin.remove("w");
  fleet.sweep();
  EXPECT_THAT(names(show()), IsEmpty());
}

TEST_F(IndexApiTest, SaysWhichFilterThereIs) {
  EXPECT_EQ(call("GET", "/v1/index?role=prefill"), 400);
  EXPECT_THAT(answer.body, HasSubstr("there is model="));
}

TEST_F(IndexApiTest, FindsWhoHoldsAPrompt) {
  const auto few = add_cache(*add_worker("few"));
  const auto many = add_cache(*add_worker("many"));
  add_cache(*add_worker("none"));
  store(*few, tokens_to(4), 1);
  store(*many, tokens_to(12), 2);
  store(*many, tokens_to(12), 3, Tier::Host);
  EXPECT_THAT(holders(tokens_to(14)), ElementsAre("many/0: 12", "few/0: 4"));
  EXPECT_EQ(json()["matches"][0], Json::parse(R"({
    "worker":"many","number":2,"rank":0,"block_size":4,"source":"events",
    "blocks":{"device":2,"host":3,"disk":3,"external":3},"told":3,"cached_tokens":12})"));
  EXPECT_THAT(holders({2, 3, 4, 5, 6}), IsEmpty());
  EXPECT_THAT(holders({}), IsEmpty());
}

TEST_F(IndexApiTest, OfAsMuchTheFirstNameComesFirst) {
  const auto b = add_worker("b");
  const auto a = add_worker("a", "m", 2);
  for (const auto& cache : {add_cache(*b), add_cache(*a, 1), add_cache(*a, 0)})
    store(*cache, tokens_to(4), 1);
  EXPECT_THAT(holders(tokens_to(5)), ElementsAre("a/0: 4", "a/1: 4", "b/0: 4"));
}

TEST_F(IndexApiTest, TheLastTokenIsAlwaysComputed) {
  store(*add_cache(*add_worker("w")), tokens_to(8), 2);
  EXPECT_THAT(holders(tokens_to(8)), ElementsAre("w/0: 4"));
  EXPECT_EQ(json()["matches"][0]["told"], 2);
  EXPECT_THAT(holders(tokens_to(9)), ElementsAre("w/0: 8"));
}

TEST_F(IndexApiTest, BlocksOfEverySizeAreLookedFor) {
  const auto small = add_cache(*add_worker("small"));
  const auto large = add_cache(*add_worker("large"), 0, "m", {.size = 8});
  store(*small, tokens_to(12), 3);
  store(*large, tokens_to(16), 2);
  EXPECT_THAT(holders(tokens_to(20)), ElementsAre("large/0: 16", "small/0: 12"));
}

TEST_F(IndexApiTest, WhatIsToldButNotBelievedCountsForNothing) {
  const auto cache = add_cache(*add_worker("w"));
  store(*cache, tokens_to(8), 2);
  cache->set_health(FeedHealth::Silent);
  EXPECT_THAT(holders(tokens_to(9)), ElementsAre("w/0: 0"));
  const Json one = json()["matches"][0];
  EXPECT_EQ(one["told"], 2);
  EXPECT_EQ(one["source"], "decisions");
  EXPECT_EQ(one["blocks"]["external"], 0);
}

TEST_F(IndexApiTest, FindsWhatWasSentWhereThereAreNoEvents) {
  const auto cache = add_cache(*add_worker("w"));
  cache->set_health(FeedHealth::None);
  caches.sent(cache->identity().holder, kvcache::hash_prompt(caches.plan("m"), tokens_to(8), ""));
  EXPECT_THAT(holders(tokens_to(9)), ElementsAre("w/0: 8"));
  EXPECT_EQ(json()["matches"][0]["source"], "decisions");
  EXPECT_EQ(json()["matches"][0]["told"], 0);
}

TEST_F(IndexApiTest, ASaltSetsPromptsApart) {
  const auto cache = add_cache(*add_worker("w"));
  store(*cache, tokens_to(4), 1, Tier::Device, {.lora = {}, .salt = "pepper"});
  EXPECT_THAT(holders(tokens_to(5)), IsEmpty());
  EXPECT_THAT(holders(tokens_to(5), {{"model", "m"}, {"cache_salt", "pepper"}}),
              ElementsAre("w/0: 4"));
  EXPECT_THAT(holders(tokens_to(5), {{"model", "m"}, {"cache_salt", "sugar"}}), IsEmpty());
  EXPECT_THAT(holders(tokens_to(5), {{"model", "m"}, {"cache_salt", nullptr}}), IsEmpty());
}

TEST_F(IndexApiTest, AnAdapterHasBlocksOfItsOwn) {
  const auto base = add_cache(*add_worker("base"));
  const auto adapter = add_cache(*add_worker("adapter", "n"), 0, "n");
  table.plans["n"].lora = "n";
  caches.publish(table);
  store(*base, tokens_to(4), 1);
  store(*adapter, tokens_to(4), 1, Tier::Device, {.lora = "n", .salt = {}});
  EXPECT_THAT(holders(tokens_to(5)), ElementsAre("base/0: 4"));
  EXPECT_THAT(holders(tokens_to(5), {{"model", "n"}}), ElementsAre("adapter/0: 4"));
}

TEST_F(IndexApiTest, WhatAnotherModelHoldsIsNotShown) {
  store(*add_cache(*add_worker("w")), tokens_to(8), 1);
  store(*add_cache(*add_worker("other", "n"), 0, "n"), tokens_to(8), 2);
  EXPECT_THAT(holders(tokens_to(9)), ElementsAre("w/0: 4"));
  EXPECT_THAT(holders(tokens_to(9), {{"model", "n"}}), ElementsAre("other/0: 8"));
}

TEST_F(IndexApiTest, AModelIsFoundByItsAlias) {
  store(*add_cache(*add_worker("w")), tokens_to(4), 1);
  EXPECT_THAT(holders(tokens_to(5), {{"model", "also-m"}}), ElementsAre("w/0: 4"));
}

TEST_F(IndexApiTest, SaysWhatIsWrongWithAQuestion) {
  EXPECT_THAT(refused("{"), HasSubstr("JSON"));
  EXPECT_THAT(refused(R"({"tokens":[1]})"), HasSubstr("\"model\""));
  EXPECT_THAT(refused(R"({"model":"x","tokens":[1]})", 404), HasSubstr("\"x\""));
  EXPECT_EQ(json()["error"]["code"], "model_not_found");
  for (const char* bad : {"", R"(,"tokens":null)", R"(,"tokens":"1")", R"(,"tokens":{})"}) {
    EXPECT_THAT(refused(fmt::format(R"({{"model":"m"{}}})", bad)), HasSubstr("\"tokens\"")) << bad;
    EXPECT_EQ(json()["error"]["param"], "tokens");
  }
  for (const char* bad : {"-1", "1.5", "\"1\"", "4294967296", "[1]"}) {
    EXPECT_THAT(refused(fmt::format(R"({{"model":"m","tokens":[7,{}]}})", bad)),
                HasSubstr("tokens[1]"))
        << bad;
  }
  EXPECT_THAT(refused(R"({"model":"m","tokens":[1],"cache_salt":5})"), HasSubstr("cache_salt"));
  EXPECT_EQ(json()["error"]["param"], "cache_salt");
}

TEST_F(IndexApiTest, TakesAsManyTokensAsAContextCanHave) {
  constexpr std::size_t kMost = 1'048'576;
  const auto body = [](std::size_t count) {
    return Json{{"model", "m"}, {"tokens", Tokens(count, 7)}}.dump();
  };
  EXPECT_EQ(call("POST", "/v1/index/match", body(kMost)), 200);
  EXPECT_EQ(json()["tokens"], kMost);
  EXPECT_THAT(refused(body(kMost + 1)), HasSubstr("1048576"));
}

struct IndexApiOffTest : test::IoFixture {
  CacheFixture off{config::IndexSource::Off};
};

TEST_F(IndexApiOffTest, KnowsNobody) {
  const auto cache = off.add_cache(*off.add_worker("w"));
  off.store(*cache, tokens_to(4), 1);
  const auto nothing = [] { return std::vector<kvcache::Feeds::Report>(); };
  const http::Routes routes{
      index_routes({.fleet = off.fleet, .caches = off.caches, .reports = nothing})};
  AnswerRecorder answer;
  run([&]() -> awaitable<void> {
    co_await call_route(routes, "POST", "/v1/index/match", R"({"model":"m","tokens":[1,2,3,4,5]})",
                        answer);
  });
  EXPECT_EQ(answer.body, R"({"tokens":5,"matches":[]})");
}

}  // namespace
}  // namespace baton::api
