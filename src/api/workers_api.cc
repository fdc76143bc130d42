// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "api/workers_api.h"

#include "api/request_fields.h"
#include "config/announcement.h"
#include "wire/json_text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::api {
namespace {

using boost::asio::awaitable;

using Json = nlohmann::ordered_json;
using Member = fleet::Fleet::Member;

constexpr std::string_view kWorkers = "/workers";
constexpr std::string_view kWorkersBelow = "/workers/";
constexpr std::string_view kDrain = "/drain";

std::string_view state_of(const Member& member, fleet::Time now) {
  return member.leaving ? "leaving" : member.worker->state(now);
}

Json seconds_since(fleet::Time time, fleet::Time now) {
  if (time == fleet::Time()) return nullptr;
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(now - time);
  return static_cast<double>(milliseconds.count()) / 1000;
}

Json loads_by_rank(const fleet::Worker& worker) {
  Json loads = Json::array();
  for (std::uint32_t rank = 0; rank < worker.ranks(); ++rank)
    loads.push_back(worker.in_flight(rank));
  return loads;
}

Json announcement_json(const fleet::Fleet& fleet, const Member& member) {
  if (member.leaving) return nullptr;
  const auto said = fleet.roster().find({member.model->name(), member.worker->authority()});
  return Json::parse(config::to_json(said->announcement));
}

Json cache_json(const std::optional<CacheSummary>& cache) {
  if (!cache) return nullptr;
  return {{"source", kvcache::to_string(cache->source)},
          {"feed", kvcache::to_string(cache->feed)},
          {"reason", cache->reason.empty() ? Json() : Json(cache->reason)},
          {"block_size", cache->block_size},
          {"blocks", cache->blocks}};
}

Json worker_json(const WorkersContext& context, const Member& member) {
  const fleet::Time now = fleet::Clock::now();
  const fleet::Worker& worker = *member.worker;
  const model::WorkerSpec& spec = worker.spec();
  const std::string why = worker.health().why();
  Json json{{"number", worker.id().value},
            {"name", worker.name()},
            {"model", member.model->name()},
            {"namespace", spec.name_space},
            {"role", model::to_string(spec.role)},
            {"engine", model::to_string(spec.engine)},
            {"url", "http://" + worker.authority()},
            {"instance", spec.instance.empty() ? Json() : Json(spec.instance)},
            {"state", state_of(member, now)},
            {"reason", why.empty() ? Json() : Json(why)},
            {"in_flight", worker.in_flight()}};
  if (worker.ranks() > 1) json["in_flight_by_rank"] = loads_by_rank(worker);
  json["overloaded"] = worker.health().overloaded(now);
  json["last_success_seconds_ago"] = seconds_since(worker.health().last_success(), now);
  json["kv_cache"] = cache_json(context.cache(worker));
  json["leaving"] = member.leaving;
  json["origin"] = member.leaving ? Json() : Json(fleet::to_string(member.origin));
  json["key"] = member.leaving ? Json() : Json(member.key);
  json["announced"] = announcement_json(context.fleet, member);
  return json;
}

template <class T>
Json known(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json known(const std::string& text) { return text.empty() ? Json() : Json(text); }

// The worker's answers to introspection.
Json facts_json(const engine::Facts* facts) {
  if (facts == nullptr) return Json();
  Json models = Json::array();
  for (const engine::Facts::Card& card : facts->models) {
    models.push_back({{"id", card.id},
                      {"parent", known(card.parent)},
                      {"max_model_len", known(card.max_model_len)}});
  }
  Json events;
  if (facts->kv_events) {
    events = {{"publisher", facts->kv_events->publisher},
              {"endpoint", facts->kv_events->endpoint.to_string()},
              {"topic", facts->kv_events->topic}};
  }
  return {{"engine", facts->engine ? Json(model::to_string(*facts->engine)) : Json()},
          {"version", known(facts->version)},
          {"models", std::move(models)},
          {"role", facts->role ? Json(model::to_string(*facts->role)) : Json()},
          {"block_size", known(facts->block_size)},
          {"data_parallel_size", known(facts->data_parallel_size)},
          {"bootstrap_port", known(facts->bootstrap_port)},
          {"kv_events", std::move(events)},
          {"max_total_tokens", known(facts->max_total_tokens)},
          {"max_running_requests", known(facts->max_running_requests)},
          {"vocabulary_size", known(facts->vocabulary_size)},
          {"unknown_because", known(facts->unknown_because)}};
}

std::string listing_text(const Json& json) {
  // An engine's error text need not be UTF-8.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Filters of GET /workers?….
struct Wanted {
  std::optional<std::string> model;
  std::optional<std::string> role;
  std::optional<std::string> state;

  bool takes(const fleet::Fleet& fleet, const Member& member) const {
    const auto is = [](const std::optional<std::string>& wanted, std::string_view value) {
      return !wanted || *wanted == value;
    };
    const bool of_model =
        is(model, member.model->name()) || (model && fleet.find(*model) == member.model);
    return of_model && is(role, model::to_string(member.worker->spec().role)) &&
           is(state, state_of(member, fleet::Clock::now()));
  }
};

Result<Wanted> read_wanted(std::string_view target) {
  Wanted wanted;
  const std::array<Filter, 3> filters{
      {{"model", &wanted.model}, {"role", &wanted.role}, {"state", &wanted.state}}};
  if (auto read = read_filters(target, filters); !read) return fail(std::move(read.error()));
  if (wanted.role && !model::parse_role(*wanted.role)) {
    return fail(
        Errc::InvalidRequest,
        fmt::format("{} is no role; there are prefill, decode and aggregated", *wanted.role));
  }
  return wanted;
}

Result<std::string> list(const WorkersContext& context, std::string_view target) {
  const auto wanted = read_wanted(target);
  if (!wanted) return fail(wanted.error());
  Json workers = Json::array();
  for (const Member& one : context.fleet.members()) {
    if (wanted->takes(context.fleet, one)) workers.push_back(worker_json(context, one));
  }
  return listing_text({{"workers", std::move(workers)}});
}

constexpr std::string_view kOrigin = "worker";

// Every problem on a line of its own.
Result<model::Announcement> told(
    std::expected<model::Announcement, std::vector<config::Problem>> announcement) {
  if (announcement) return *std::move(announcement);
  std::string all;
  for (const config::Problem& problem : announcement.error()) {
    if (!all.empty()) all += '\n';
    all +=
        fmt::format("{}: {}", problem.path.empty() ? problem.file : problem.path, problem.message);
  }
  return fail(Errc::InvalidRequest, std::move(all));
}

Result<void> check_json(std::string_view body) {
  if (body.size() > config::kMaxAnnouncementBytes) {
    return fail(Errc::PayloadTooLarge, fmt::format("a worker is described in {} bytes at most",
                                                   config::kMaxAnnouncementBytes));
  }
  return wire::validate_json_object(body);
}

Result<fleet::AdminSource::Added> add(fleet::AdminSource& admin, std::string_view body) {
  if (auto checked = check_json(body); !checked) return fail(std::move(checked.error()));
  auto announcement = told(config::parse_announcement(body, kOrigin));
  if (!announcement) return fail(std::move(announcement.error()));
  return admin.add(*std::move(announcement));
}

// A JSON merge patch (RFC 7396): null takes a key away.
Result<Member> amend(fleet::AdminSource& admin, std::string_view worker, std::string_view body) {
  if (auto checked = check_json(body); !checked) return fail(std::move(checked.error()));
  return admin.amend(worker, [body](const model::Announcement& before) {
    return told(config::amend_announcement(before, body, kOrigin));
  });
}

awaitable<void> respond_created(http::Call call, std::uint64_t number, std::string json) {
  wire::Headers headers;
  headers.add("Content-Type", "application/json");
  headers.add("Location", fmt::format("{}{}", kWorkersBelow, number));
  co_await call.response.respond(201, headers, json);
}

// {id} of /workers/{id} and /workers/{id}/drain.
std::string worker_in(std::string_view path) {
  path.remove_prefix(kWorkersBelow.size());
  if (path.ends_with(kDrain)) path.remove_suffix(kDrain.size());
  return wire::percent_decoded(path);
}

}  // namespace

std::vector<http::Route> workers_routes(WorkersContext context) {
  const auto respond = [context](http::Call call, Result<Member> member) {
    if (!member) return http::respond_error(std::move(call), std::move(member.error()));
    Json json = worker_json(context, *member);
    json["engine_facts"] = facts_json(context.facts(member->worker->id()));
    return http::respond_json(std::move(call), 200, listing_text(json));
  };
  // A handler for paths below /workers/, with and without /drain at their end.
  using Act = std::function<Result<Member>(const std::string& worker, std::string_view body)>;
  const auto acts = [respond](Act plain, Act drain) {
    return [respond, plain, drain](http::Call call) {
      const bool drains = call.head.path().ends_with(kDrain);
      const Act& act = drains ? drain : plain;
      if (!act) {
        return http::respond_error(
            std::move(call),
            Error(Errc::MethodNotAllowed, drains ? "/workers/{id}/drain takes POST and DELETE"
                                                 : "/workers/{id} takes GET, PATCH and DELETE"));
      }
      auto done = act(worker_in(call.head.path()), call.body);
      return respond(std::move(call), std::move(done));
    };
  };
  const auto show_all = [context](http::Call call) {
    auto all = list(context, call.head.target);
    if (!all) return http::respond_error(std::move(call), std::move(all.error()));
    return http::respond_json(std::move(call), 200, *std::move(all));
  };
  const auto post = [context, respond](http::Call call) {
    auto added = add(context.admin, call.body);
    if (!added) return http::respond_error(std::move(call), std::move(added.error()));
    if (!added->is_new) return respond(std::move(call), std::move(added->member));
    Json json = worker_json(context, added->member);
    json["engine_facts"] = nullptr;  // it has not been asked yet
    return respond_created(std::move(call), added->member.worker->id().value, listing_text(json));
  };
  fleet::AdminSource& admin = context.admin;
  const Act show = [&admin](const std::string& worker, auto) { return admin.find(worker); };
  const Act change = [&admin](const std::string& worker, std::string_view body) {
    return amend(admin, worker, body);
  };
  const Act remove = [&admin](const std::string& worker, auto) { return admin.remove(worker); };
  const Act drain = [&admin](const std::string& worker, auto) { return admin.drain(worker, true); };
  const Act undrain = [&admin](const std::string& worker, auto) {
    return admin.drain(worker, false);
  };
  const std::string all(kWorkers);
  const std::string one(kWorkersBelow);
  return {
      {"GET", all, http::Access::Operator, show_all},
      {"POST", all, http::Access::Operator, post},
      {"GET", one, http::Access::Operator, acts(show, nullptr)},
      {"PATCH", one, http::Access::Operator, acts(change, nullptr)},
      {"POST", one, http::Access::Operator, acts(nullptr, drain)},
      {"DELETE", one, http::Access::Operator, acts(remove, undrain)},
  };
}

}  // namespace baton::api
