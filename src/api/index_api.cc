// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "api/index_api.h"

#include "api/request_fields.h"
#include "kvcache/view/names.h"
#include "prompt/completion_prompts.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace baton::api {
namespace {

using Json = nlohmann::ordered_json;
using kvcache::Cache;
using kvcache::FeedStatus;
using kvcache::Overlap;
using Report = kvcache::Feeds::Report;

// More than any model's context.
constexpr std::size_t kMostTokens = 1'048'576;

std::string index_text(const Json& json) {
  // A worker's name need not be UTF-8.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json json_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

// To three places: there is no more truth in it.
double rounded(double value) { return std::round(value * 1000) / 1000; }

template <class Count>
Json by_tier(const std::array<Count, kvcache::kTiers>& blocks) {
  Json json = Json::object();
  for (std::size_t tier = 0; tier < kvcache::kTiers; ++tier)
    json[std::string(kvcache::kTierNames[tier])] = blocks[tier];
  return json;
}

Json skipped_json(const kvcache::FeedTally& tally) {
  Json json = Json::object();
  for (std::size_t reason = 0; reason < tally.skipped.size(); ++reason) {
    if (tally.skipped[reason] == 0) continue;
    json[std::string(kvcache::to_string(static_cast<kvcache::Skipped>(reason)))] =
        tally.skipped[reason];
  }
  return json;
}

void add_plan(const kvcache::FeedPlan& plan, Json& json) {
  json["endpoint"] = json_or_null(plan.events);
  json["replay"] = json_or_null(plan.replay);
  json["way"] = kvcache::name_of(plan.way);
}

void add_status(const std::optional<FeedStatus>& told, Json& json) {
  const FeedStatus status = told.value_or(FeedStatus());
  json["state"] = told ? Json(kvcache::to_string(status.state)) : Json();
  json["sequence"] = status.position ? Json(status.position->sequence) : Json();
  json["seconds_since_last"] = nullptr;
  if (status.last_batch) {
    const std::chrono::duration<double> since = kvcache::Clock::now() - *status.last_batch;
    json["seconds_since_last"] = rounded(since.count());
  }
  json["lag_ms"] = status.lag ? Json(rounded(status.lag->count() * 1000)) : Json();
  json["batches"] = status.tally.batches;
  json["events"] = status.tally.events;
  json["gaps"] = status.gaps;
  json["lost"] = status.lost;
  json["replayed"] = status.replayed;
  json["duplicates"] = status.duplicates;
  json["restarts"] = status.restarts;
  json["malformed_batches"] = status.tally.malformed_batches;
  json["skipped"] = skipped_json(status.tally);
}

Json cache_json(const kvcache::KvCacheView& caches, const Report& report,
                const model::WorkerSpec& spec) {
  const Cache& cache = *report.cache;
  const Cache::Identity& identity = cache.identity();
  Json json{{"worker", identity.worker},
            {"number", identity.holder.worker.value},
            {"url", "http://" + identity.authority},
            {"model", identity.model},
            {"role", model::to_string(spec.role)},
            {"engine", model::to_string(spec.engine)},
            {"rank", identity.holder.rank},
            {"block_size", cache.shape().size},
            {"bigram", cache.shape().bigram},
            {"source", kvcache::to_string(cache.trusted(caches.settings().source))},
            {"feed", kvcache::to_string(cache.health())},
            {"reason", json_or_null(cache.reason())},
            {"believed", cache.believed()}};
  add_plan(report.plan, json);
  add_status(report.status, json);
  const auto holding = caches.index().holding(cache.slot());
  json["blocks"] = by_tier(holding.blocks);
  json["bytes"] = holding.bytes;
  const Cache::Truth truth = cache.truth();
  json["truth"] = {{"samples", truth.samples},
                   {"wrong", rounded(truth.error)},
                   {"predicted_tokens", truth.predicted_tokens},
                   {"reported_tokens", truth.reported_tokens}};
  return json;
}

Result<std::string> describe(const IndexContext& context, std::string_view target) {
  std::optional<std::string> model;
  if (auto read = read_filters(target, std::array{Filter{"model", &model}}); !read)
    return fail(std::move(read.error()));
  if (model) {
    if (const auto found = context.fleet.find(*model)) model = found->name();  // may be an alias
  }
  std::map<model::WorkerId, std::shared_ptr<fleet::Worker>> workers;
  for (auto& member : context.fleet.members()) workers.emplace(member.worker->id(), member.worker);
  auto reports = context.reports();
  std::ranges::sort(reports, {}, [](const Report& report) {
    const Cache::Identity& identity = report.cache->identity();
    return std::tie(identity.model, identity.worker, identity.holder);
  });
  Json caches = Json::array();
  for (const Report& report : reports) {
    const Cache::Identity& identity = report.cache->identity();
    const auto worker = workers.find(identity.holder.worker);
    // One that is not there any more goes from the reports in a moment.
    if (worker == workers.end() || (model && *model != identity.model)) continue;
    caches.push_back(cache_json(context.caches, report, worker->second->spec()));
  }
  const auto size = context.caches.index().size();
  const config::KvIndex& settings = context.caches.settings();
  return index_text({{"source", kvcache::name_of(settings.source)},
                     {"limit", settings.blocks},
                     {"blocks", size.blocks},
                     {"memberships", size.memberships},
                     {"bytes", size.bytes},
                     {"caches", std::move(caches)}});
}

// A cache and the part of a prompt that it holds.
struct Holding {
  std::shared_ptr<Cache> cache;
  Overlap overlap;
  std::size_t tokens;  // that its engine could take out of its cache

  Json json() const {
    const Cache::Identity& identity = cache->identity();
    return {{"worker", identity.worker},
            {"number", identity.holder.worker.value},
            {"rank", identity.holder.rank},
            {"block_size", overlap.block_size},
            {"source", kvcache::to_string(overlap.source)},
            {"blocks", by_tier(overlap.blocks)},
            {"told", overlap.told},
            {"cached_tokens", tokens}};
  }
};

std::vector<Holding> find_holders(const kvcache::KvCacheView& caches, const std::string& model,
                                  const kvcache::PromptBlocks& prompt) {
  std::vector<Holding> holders;
  for (const Overlap& overlap : caches.match(prompt)) {
    auto cache = caches.find(overlap.holder);
    // The same tokens are something else to another model.
    if (!cache || cache->identity().model != model) continue;
    const kvcache::BlockShape shape{.size = overlap.block_size, .bigram = cache->shape().bigram};
    const std::size_t blocks = std::min<std::size_t>(
        overlap.blocks.back(), kvcache::reusable_blocks(prompt.tokens, shape));
    holders.push_back({std::move(cache), overlap, blocks * shape.size});
  }
  std::ranges::sort(holders, [](const Holding& a, const Holding& b) {
    if (a.tokens != b.tokens) return a.tokens > b.tokens;
    const Cache::Identity& one = a.cache->identity();
    const Cache::Identity& other = b.cache->identity();
    return std::tie(one.worker, one.holder) < std::tie(other.worker, other.holder);
  });
  return holders;
}

Result<tokenizer::TokenIds> read_tokens(const wire::JsonObject& body) {
  const auto refuse = [](std::string why) {
    return fail(Error(Errc::InvalidRequest, std::move(why)).with_param("tokens"));
  };
  const auto list = body.find("tokens");
  if (!list || list->empty() || list->front() != '[')
    return refuse("\"tokens\" must be a list of token ids");
  auto ids = prompt::token_ids_of(*list, "tokens");
  if (ids && ids->size() > kMostTokens)
    return refuse(
        fmt::format("\"tokens\" has {} ids; at most {} are taken", ids->size(), kMostTokens));
  return ids;
}

Result<std::string> read_salt(const wire::JsonObject& body) {
  const auto value = body.find("cache_salt");
  if (!value || *value == "null") return std::string();
  if (auto salt = body.find_string("cache_salt")) return *std::move(salt);
  return fail(Error(Errc::InvalidRequest, "\"cache_salt\" must be text").with_param("cache_salt"));
}

Result<std::string> match(const IndexContext& context, std::string_view text) {
  auto body = wire::JsonObject::parse(text);
  if (!body) return fail(std::move(body.error()));
  const auto served = find_model(context.fleet, *body);
  if (!served) return fail(served.error());
  const auto tokens = read_tokens(*body);
  if (!tokens) return fail(tokens.error());
  const auto salt = read_salt(*body);
  if (!salt) return fail(salt.error());
  const std::string& name = served->model->name();
  kvcache::HashPlan plan = context.caches.plan(name);
  if (served->adapter) plan.lora = served->adapter->name;
  const auto prompt = kvcache::hash_prompt(plan, *tokens, *salt);
  Json matches = Json::array();
  for (const Holding& holder : find_holders(context.caches, name, prompt))
    matches.push_back(holder.json());
  return index_text({{"tokens", tokens->size()}, {"matches", std::move(matches)}});
}

}  // namespace

std::vector<http::Route> index_routes(IndexContext context) {
  const auto show = [context](http::Call call) {
    auto answer = describe(context, call.head.target);
    return http::respond(std::move(call), std::move(answer));
  };
  const auto look_up = [context](http::Call call) {
    auto answer = match(context, call.body);
    return http::respond(std::move(call), std::move(answer));
  };
  return {{"GET", "/v1/index", http::Access::Operator, show},
          {"POST", "/v1/index/match", http::Access::Operator, look_up}};
}

}  // namespace baton::api
