// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/routing_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

namespace baton::config {
namespace {

constexpr double kMostWeight = 1000;
constexpr std::size_t kMostClasses = 64;

Parsed<double> parse_scale(std::string_view text) { return parse_fraction(text, kMostWeight); }
Parsed<double> parse_share(std::string_view text) { return parse_fraction(text, 1); }

template <std::uint64_t kLeast>
Parsed<std::uint64_t> parse_tokens(std::string_view text) {
  constexpr std::size_t kMost = 1'000'000'000'000;
  return parse_number(text, kLeast, kMost);
}

constexpr std::array<std::string_view, 4> kBypasses{"never", "isl_bounding", "prefill_load",
                                                    "isl_or_load"};
constexpr std::array<std::string_view, 2> kLoadModels{"none", "measured"};
constexpr std::array<std::string_view, 2> kWhenLate{"refuse", "queue"};
constexpr std::array<std::string_view, 4> kOrders{"fcfs", "lcfs", "wspt", "shortest"};

// The names are in the order of the values.
template <class Value, const auto& kNames>
std::optional<Value> named(std::string_view name) {
  const auto* const at = std::ranges::find(kNames, name);
  if (at == kNames.end()) return std::nullopt;
  return static_cast<Value>(at - kNames.begin());
}

Parsed<Bypass> parse_bypass(std::string_view text) {
  return parse_choice<Bypass>(text, named<Bypass, kBypasses>, kBypasses);
}

Parsed<PrefillLoadModel> parse_load_model(std::string_view text) {
  return parse_choice<PrefillLoadModel>(text, named<PrefillLoadModel, kLoadModels>, kLoadModels);
}

Parsed<QueueOrder> parse_order(std::string_view text) {
  return parse_choice<QueueOrder>(text, named<QueueOrder, kOrders>, kOrders);
}

// Whether late requests wait.
Parsed<bool> parse_when_late(std::string_view text) {
  return parse_choice<bool>(text, named<bool, kWhenLate>, kWhenLate);
}

std::optional<Slo> read_slo(const Node& node, const Section& owner, Problems& problems) {
  const Node* const map = node.find("slo");
  if (map == nullptr || map->kind == Node::Kind::Null) return std::nullopt;
  const Section section = owner.section("slo");
  Slo slo;
  section.read("ttft", slo.ttft, parse_duration);
  section.read("itl", slo.itl, parse_duration);
  section.read("when_late", slo.queue_late, parse_when_late);
  if (map->kind == Node::Kind::Map && map->find("ttft") == nullptr && map->find("itl") == nullptr) {
    problems.add(*map, owner.path_of("slo"), "promises nothing; write ttft: 1s, or itl: 40ms");
  }
  return slo;
}

Cost read_cost(const Section& model) {
  const Section section = model.section("cost");
  Cost cost;
  section.read("overlap_score_credit", cost.overlap_score_credit, parse_scale);
  section.read("overlap_score_credit_decay", cost.overlap_score_credit_decay, parse_scale);
  section.read("prefill_load_scale", cost.prefill_load_scale, parse_scale);
  section.read("decode_active_request_weight", cost.decode_active_request_weight, parse_scale);
  section.read("host_cache_hit_weight", cost.host_cache_hit_weight, parse_share);
  section.read("disk_cache_hit_weight", cost.disk_cache_hit_weight, parse_share);
  section.read("temperature", cost.temperature, parse_scale);
  section.read("track_prefill_tokens", cost.track_prefill_tokens, parse_boolean);
  section.read("prefill_load_model", cost.prefill_load_model, parse_load_model);
  section.read("track_output_blocks", cost.track_output_blocks, parse_boolean);
  section.read("assume_kv_reuse", cost.assume_kv_reuse, parse_boolean);
  return cost;
}

ConditionalPrefill read_conditional(const Section& model) {
  const Section section = model.section("conditional_prefill");
  ConditionalPrefill conditional;
  section.read("policy", conditional.policy, parse_bypass);
  section.read("max_new_tokens", conditional.max_new_tokens, parse_tokens<0>);
  section.read("max_new_share", conditional.max_new_share, parse_share);
  section.read("prefill_busy_threshold", conditional.prefill_busy_threshold, parse_scale);
  section.read("decode_busy_threshold", conditional.decode_busy_threshold, parse_share);
  return conditional;
}

// Reads the keys of a class, or of the queue itself if it is a single class.
void read_class(const Section& section, QueueClass& result) {
  section.read("order", result.order, parse_order);
  section.read("busy_threshold", result.busy_share, parse_scale);
  section.read("busy_tokens", result.busy_tokens, parse_tokens<0>);
  section.read("requests_per_worker", result.requests_per_worker, parse_tokens<0>);
  section.read("tokens_per_worker", result.tokens_per_worker, parse_tokens<0>);
  section.read("cached_tokens_per_worker", result.cached_tokens_per_worker, parse_tokens<0>);
}

std::vector<QueueBucket> read_buckets(const Section& queue, Problems& problems) {
  std::vector<QueueBucket> buckets;
  const std::vector<Node>& nodes = queue.list("buckets");
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::string path = fmt::format("{}[{}]", queue.path_of("buckets"), i);
    const Section section(nodes[i], path, "models[].queue.buckets[]", problems);
    QueueBucket bucket;
    section.read("name", bucket.name, parse_name);
    section.read("min_tokens", bucket.min_tokens, parse_tokens<0>);
    if (bucket.name.empty()) problems.add(nodes[i], path, "has no name; write name: …");
    const bool first = buckets.empty();
    if (first && bucket.min_tokens != 0) {
      problems.add(nodes[i], path, "is the first, so its min_tokens must be 0");
    } else if (!first && bucket.min_tokens <= buckets.back().min_tokens) {
      problems.add(nodes[i], path, "must have more min_tokens than the one before it");
    }
    buckets.push_back(std::move(bucket));
  }
  return buckets;
}

std::vector<QueueClass> read_classes(const Section& queue, Problems& problems) {
  std::vector<QueueClass> classes;
  const std::vector<Node>& nodes = queue.list("classes");
  if (nodes.size() > kMostClasses) {
    problems.add(nodes[kMostClasses], queue.path_of("classes"),
                 fmt::format("has more than {} entries; remove some", kMostClasses));
    return classes;
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::string path = fmt::format("{}[{}]", queue.path_of("classes"), i);
    const Section section(nodes[i], path, "models[].queue.classes[]", problems);
    QueueClass result;
    section.read("name", result.name, parse_name);
    section.read("family", result.family, parse_name);
    section.read("bucket", result.bucket, parse_name);
    section.read("quantum", result.quantum, parse_tokens<1>);
    read_class(section, result);
    result.slo = read_slo(nodes[i], section, problems);
    if (result.name.empty()) problems.add(nodes[i], path, "has no name; write name: …");
    if (std::ranges::find(classes, result.name, &QueueClass::name) != classes.end())
      problems.add(nodes[i], path, fmt::format("{} stands twice; remove one", shown(result.name)));
    if (result.family.empty() != result.bucket.empty())
      problems.add(nodes[i], path, "must have both a family and a bucket, or neither");
    classes.push_back(std::move(result));
  }
  return classes;
}

// Every family must have a class for every bucket.
void check_families(const Node& at, const Section& section, const Queue& queue,
                    Problems& problems) {
  const std::string path = section.path();
  std::set<std::string_view> families;
  for (const QueueClass& one : queue.classes) {
    if (!one.family.empty()) families.insert(one.family);
  }
  if (families.empty() && queue.default_family.empty() && queue.buckets.empty()) return;
  if (queue.default_family.empty() || queue.buckets.empty() || families.empty()) {
    problems.add(
        at, path,
        "needs default_family, buckets and classes with a family together, or none of them");
    return;
  }
  if (!families.contains(queue.default_family)) {
    problems.add(at, section.path_of("default_family"),
                 fmt::format("no class has the family {}", shown(queue.default_family)));
  }
  for (const std::string_view family : families) {
    for (const QueueBucket& bucket : queue.buckets) {
      const auto count = std::ranges::count_if(queue.classes, [&](const QueueClass& one) {
        return one.family == family && one.bucket == bucket.name;
      });
      if (count == 1) continue;
      problems.add(at, section.path_of("classes"),
                   fmt::format("{} of family {} has {} classes; give it exactly one",
                               shown(bucket.name), shown(family), count));
    }
  }
  for (const QueueClass& one : queue.classes) {
    if (one.bucket.empty() ||
        std::ranges::find(queue.buckets, one.bucket, &QueueBucket::name) != queue.buckets.end()) {
      continue;
    }
    problems.add(at, section.path_of("classes"),
                 fmt::format("class {} is for the bucket {}, which is not in buckets",
                             shown(one.name), shown(one.bucket)));
  }
}

Queue read_queue(const Node& node, const Section& model, Problems& problems) {
  Queue queue;
  const Section section = model.section("queue");
  const Node* const map = node.find("queue");
  section.read("patience", queue.patience, parse_duration_or_zero);
  section.read("longest_wait", queue.longest_wait, parse_duration_or_zero);
  section.read("fair_tenants", queue.fair_tenants, parse_boolean);
  section.read("follow_tokens", queue.follow_tokens, parse_tokens<0>);
  section.read("default_family", queue.default_family, parse_name);
  if (map == nullptr || map->kind != Node::Kind::Map) return queue;
  queue.buckets = read_buckets(section, problems);
  queue.classes = read_classes(section, problems);
  QueueClass only;
  only.name = "default";
  const QueueClass nothing = only;
  read_class(section, only);
  if (queue.classes.empty()) {
    if (!only.queues() && only != nothing) {
      problems.add(*map, model.path_of("queue"),
                   "never holds a request; say when a worker is busy, as busy_threshold: 4");
    }
    if (only.queues()) queue.classes.push_back(std::move(only));
  } else {
    for (const std::string_view key :
         {"order", "busy_threshold", "busy_tokens", "requests_per_worker", "tokens_per_worker",
          "cached_tokens_per_worker"}) {
      if (const Node* const given = map->find(key); given != nullptr)
        problems.add(*given, section.path_of(key),
                     "is said by each of the classes; remove it here");
    }
  }
  check_families(*map, section, queue, problems);
  return queue;
}

}  // namespace

std::chrono::milliseconds Routing::least_itl() const {
  std::optional<std::chrono::milliseconds> least;
  const auto consider = [&least](const std::optional<Slo>& objective) {
    if (objective && objective->itl)
      least = std::min(least.value_or(*objective->itl), *objective->itl);
  };
  consider(slo);
  for (const QueueClass& one : queue.classes) consider(one.slo);
  return least.value_or(std::chrono::milliseconds(0));
}

Routing read_routing(const Node& node, const Section& model, Problems& problems) {
  Routing routing{.cost = read_cost(model),
                  .conditional = read_conditional(model),
                  .queue = read_queue(node, model, problems),
                  .slo = read_slo(node, model, problems)};
  ConditionalPrefill& conditional = routing.conditional;
  if (conditional.policy != Bypass::PrefillLoad && conditional.policy != Bypass::IslOrLoad)
    return routing;
  if (!conditional.prefill_busy_threshold && !routing.queue.classes.empty())
    conditional.prefill_busy_threshold = routing.queue.classes.front().busy_share;
  if (!conditional.prefill_busy_threshold) {
    problems.add(*node.find("conditional_prefill"), model.path_of("conditional_prefill"),
                 "goes by the load of prefill workers, but nothing says when one is busy; add "
                 "prefill_busy_threshold");
  }
  return routing;
}

}  // namespace baton::config
