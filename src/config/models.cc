// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/models.h"

#include "config/routing_keys.h"
#include "config/workers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

namespace baton::config {
namespace {

using model::Disaggregation;
using model::Role;
using model::WorkerSpec;

// A worker and where it was written.
struct Placed {
  const Node* node;
  std::string path;
  WorkerSpec spec;
};

// A model while it is being checked. `complete` is false where a worker could not be read: then
// nothing is said about the fleet as a whole, because a misspelt value may be to blame.
struct Draft {
  const Node* node;
  std::string path;
  Model model;
  std::vector<Placed> workers;
  bool complete = true;
};

Parsed<model::Policy> parse_policy(std::string_view text) {
  return parse_choice<model::Policy>(text, model::parse_policy, model::kPolicyNames);
}

Parsed<Disaggregation> parse_disaggregation(std::string_view text) {
  constexpr std::array<std::string_view, 3> kNames{"auto", "required", "off"};
  return parse_choice<Disaggregation>(text, model::parse_disaggregation, kNames);
}

Parsed<model::OnPrefillFailure> parse_on_prefill_failure(std::string_view text) {
  constexpr std::array<std::string_view, 3> kNames{"retry", "fallback", "fail"};
  return parse_choice<model::OnPrefillFailure>(text, model::parse_on_prefill_failure, kNames);
}

Parsed<std::string> parse_session_field(std::string_view text) {
  if (text == "session_id" || text == "user") return std::string(text);
  return std::unexpected(fmt::format("unknown {}; write session_id or user", shown(text)));
}

void read_affinity(const Node& node, const Section& model, Affinity& affinity, Problems& problems) {
  const Node* const map = node.find("affinity");
  if (map == nullptr || map->kind == Node::Kind::Null) return;
  const Section section = model.section("affinity");
  section.read("ttl", affinity.ttl, parse_duration);
  section.read("sessions", affinity.sessions, number_within<1, 10'000'000>);
  const std::vector<Node>& fields = section.list("body_fields");
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::string at = fmt::format("{}[{}]", section.path_of("body_fields"), i);
    if (auto field = Section::read_scalar(fields[i], at, parse_session_field, problems)) {
      affinity.body_fields.push_back(*std::move(field));
    }
  }
  if (map->kind == Node::Kind::Map && map->find("ttl") == nullptr) {
    problems.add(*map, model.path_of("affinity"), "has no ttl; write how long, as ttl: 10m");
  }
}

Parsed<model::Tokenize> parse_tokenize(std::string_view text) {
  constexpr std::array<std::string_view, 3> kNames{"local", "engine", "off"};
  return parse_choice<model::Tokenize>(text, model::parse_tokenize, kNames);
}

Parsed<model::SendTokenIds> parse_send_token_ids(std::string_view text) {
  constexpr std::array<std::string_view, 3> kNames{"auto", "always", "never"};
  return parse_choice<model::SendTokenIds>(text, model::parse_send_token_ids, kNames);
}

void read_tokens(const Node& node, const Section& model, Tokens& tokens, Problems& problems) {
  std::optional<model::Tokenize> by;
  model.read("tokenizer", tokens.tokenizer, parse_path);
  model.read("chat_template", tokens.chat_template, parse_path);
  model.read("tokenize", by, parse_tokenize);
  model.read("send_token_ids", tokens.send, parse_send_token_ids);
  const bool has_tokenizer = node.find("tokenizer") != nullptr;
  tokens.by = by.value_or(has_tokenizer ? model::Tokenize::Local : model::Tokenize::Off);
  if (by == model::Tokenize::Local && !has_tokenizer) {
    problems.add(*node.find("tokenize"), model.path_of("tokenize"),
                 "is local, but there is no tokenizer; write tokenizer: FOLDER, or engine");
  }
  if (node.find("chat_template") != nullptr && !has_tokenizer) {
    problems.add(*node.find("chat_template"), model.path_of("chat_template"),
                 "has no effect without a tokenizer; write tokenizer: FOLDER, or remove it");
  }
}

std::vector<std::string> read_names(std::string_view key, const Section& section,
                                    const std::string& path, Problems& problems) {
  std::vector<std::string> names;
  const std::vector<Node>& list = section.list(key);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string at = fmt::format("{}.{}[{}]", path, key, i);
    if (auto name = Section::read_scalar(list[i], at, parse_name, problems))
      names.push_back(*std::move(name));
  }
  return names;
}

// Without forecasts, only a queue can tell that a request would be late.
void check_slo(const Node& node, const Section& section, const Model& model, Problems& problems) {
  if (model.prefill_policy.value_or(model.policy) == model::Policy::Ttft) return;
  const auto& classes = model.routing.queue.classes;
  const auto promises = [&](const QueueClass& one) {
    const Slo* const slo = one.slo ? &*one.slo : model.routing.slo ? &*model.routing.slo : nullptr;
    return slo != nullptr && slo->ttft && !one.queues();
  };
  const bool promised = classes.empty() ? model.routing.slo && model.routing.slo->ttft
                                        : std::ranges::any_of(classes, promises);
  if (!promised) return;
  const Node* const slo = node.find("slo");
  problems.add(
      slo != nullptr ? *slo : node, section.path_of("slo"),
      "promises a time to first token, but no request waits for a worker with this policy; use "
      "policy: ttft, or say when a worker is busy, as queue: {busy_threshold: 4}");
}

Draft read_model(const Node& node, const std::string& path, Problems& problems) {
  Draft draft{.node = &node, .path = path, .model = {}, .workers = {}};
  Model& result = draft.model;
  const Section section(node, path, "models[]", problems);
  if (node.kind != Node::Kind::Map) {
    if (node.kind == Node::Kind::Null) problems.add(node, path, "is empty; remove it");
    draft.complete = false;
    return draft;
  }
  section.read("name", result.name, parse_name);
  if (node.find("name") == nullptr) problems.add(node, path, "has no name; write name: …");
  section.read("policy", result.policy, parse_policy);
  section.read("prefill_policy", result.prefill_policy, parse_policy);
  section.read("decode_policy", result.decode_policy, parse_policy);
  section.read("disaggregation", result.disaggregation, parse_disaggregation);
  section.read("on_prefill_failure", result.on_prefill_failure, parse_on_prefill_failure);
  section.read("retries", result.retries, number_within<0, 10>);
  section.read("migration", result.migration, number_within<0, 10>);
  read_affinity(node, section, result.affinity, problems);
  read_tokens(node, section, result.tokens, problems);
  result.routing = read_routing(node, section, problems);
  check_slo(node, section, result, problems);
  result.aliases = read_names("aliases", section, path, problems);
  result.adapters = read_names("adapters", section, path, problems);
  const std::size_t before = problems.count();
  const std::vector<Node>& workers = section.list("workers");
  for (std::size_t i = 0; i < workers.size(); ++i) {
    std::string at = fmt::format("{}.workers[{}]", path, i);
    const Section worker(workers[i], at, kWorkerPattern, problems);
    if (const auto spec = read_worker(workers[i], worker, problems)) {
      draft.workers.push_back({&workers[i], std::move(at), *spec});
      result.workers.push_back(*spec);
    }
  }
  draft.complete = problems.count() == before;
  return draft;
}

void check_names(const std::vector<Draft>& drafts, Problems& problems) {
  std::map<std::string, std::string, std::less<>> owners;  // name → path of the model that has it
  for (const Draft& draft : drafts) {
    const auto claim = [&](const std::string& name, const std::string& path) {
      if (name.empty()) return;
      const auto [owner, is_new] = owners.emplace(name, draft.path);
      if (is_new) return;
      problems.add(
          *draft.node, path,
          fmt::format("{} is already a name of {}; names, aliases and adapters must differ",
                      shown(name), owner->second));
    };
    claim(draft.model.name, draft.path + ".name");
    for (std::size_t i = 0; i < draft.model.aliases.size(); ++i) {
      claim(draft.model.aliases[i], fmt::format("{}.aliases[{}]", draft.path, i));
    }
    for (std::size_t i = 0; i < draft.model.adapters.size(); ++i) {
      claim(draft.model.adapters[i], fmt::format("{}.adapters[{}]", draft.path, i));
    }
  }
}

std::string place(const Placed& worker) {
  return worker.node->flag.empty() ? fmt::format("{} (line {})", worker.path, worker.node->line)
                                   : worker.node->flag;
}

// One server has one engine and one role; several models may share it only under the same ones.
void check_duplicates(const std::vector<Draft>& drafts, Problems& problems) {
  struct First {
    const Draft* draft;
    const Placed* worker;
  };
  std::map<std::string, First> servers;
  for (const Draft& draft : drafts) {
    for (const Placed& worker : draft.workers) {
      const std::string address = worker.spec.endpoint.to_string();
      const auto [known, is_new] = servers.emplace(address, First{&draft, &worker});
      if (is_new) continue;
      const First& first = known->second;
      const bool alike = first.worker->spec.engine == worker.spec.engine &&
                         first.worker->spec.role == worker.spec.role;
      if (first.draft == &draft) {
        problems.add(*worker.node, worker.path,
                     fmt::format("{} is already a worker of this model at {}; remove one", address,
                                 place(*first.worker)));
      } else if (!alike) {
        problems.add(*worker.node, worker.path,
                     fmt::format("{} is {} {} at {}; one server has one engine and one role",
                                 address, to_string(first.worker->spec.engine),
                                 to_string(first.worker->spec.role), place(*first.worker)));
      }
    }
  }
}

// A name in requests must mean one worker of the model.
void check_worker_ids(const Draft& draft, Problems& problems) {
  std::map<std::string, const Placed*> owners;
  for (const Placed& worker : draft.workers)
    owners.emplace(worker.spec.endpoint.to_string(), &worker);
  for (const Placed& worker : draft.workers) {
    if (worker.spec.name.empty()) continue;
    const auto [owner, is_new] = owners.emplace(worker.spec.name, &worker);
    if (is_new || owner->second == &worker) continue;
    problems.add(*worker.node->find("id"), worker.path + ".id",
                 fmt::format("{} already means {}; ids of one model must differ",
                             shown(worker.spec.name), place(*owner->second)));
  }
}

// Does not check whether a fleet can serve: its workers come and go, and it reports itself what is
// missing. But workers that can never hand over to each other are a mistake.
void check_engines(const Draft& draft, Problems& problems) {
  std::map<std::string_view, const Placed*> first_of;  // by namespace
  for (const Placed& worker : draft.workers) {
    if (worker.spec.role == Role::Aggregated) continue;
    const Placed& first = *first_of.emplace(worker.spec.name_space, &worker).first->second;
    if (worker.spec.engine == first.spec.engine) continue;
    problems.add(
        *worker.node, worker.path + ".engine",
        fmt::format("is {}, but {} is {}; in this version the prefill and decode workers of one "
                    "model and namespace must run one engine",
                    to_string(worker.spec.engine), place(first), to_string(first.spec.engine)));
  }
}

}  // namespace

std::vector<Model> read_models(const Section& root, Problems& problems) {
  std::vector<Draft> drafts;
  const std::vector<Node>& nodes = root.list("models");
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    drafts.push_back(read_model(nodes[i], fmt::format("models[{}]", i), problems));
  }
  check_names(drafts, problems);
  check_duplicates(drafts, problems);
  std::vector<Model> models;
  for (Draft& draft : drafts) {
    check_worker_ids(draft, problems);
    if (draft.complete) check_engines(draft, problems);
    models.push_back(std::move(draft.model));
  }
  return models;
}

}  // namespace baton::config
