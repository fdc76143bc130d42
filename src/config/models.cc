// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/models.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

namespace baton::config {
namespace {

using model::Engine;
using model::Role;
using model::WorkerSpec;

// A worker and where it was written.
struct Placed {
  const Node* node;
  std::string path;
  WorkerSpec spec;
};

// A model while it is being checked. `complete` is false where a worker could not be read: then
// what is missing may just be misspelt, and nothing is said about the fleet as a whole.
struct Draft {
  const Node* node;
  std::string path;
  Model model;
  std::vector<Placed> workers;
  bool complete = true;
};

template <class Enum>
Parsed<Enum> parse_choice(std::string_view text, std::optional<Enum> (*parse)(std::string_view),
                          std::span<const std::string_view> names) {
  if (const auto value = parse(text)) return *value;
  if (const auto near = nearest(text, names); !near.empty()) {
    return std::unexpected(fmt::format("unknown {}; did you mean {}?", shown(text), near));
  }
  return std::unexpected(
      fmt::format("unknown {}; write one of {}", shown(text), fmt::join(names, ", ")));
}

Parsed<model::Policy> parse_policy(std::string_view text) {
  constexpr std::array<std::string_view, 4> kNames{"round_robin", "random", "power_of_two",
                                                   "least_loaded"};
  if (text == "kv" || text == "direct") {
    return std::unexpected(
        fmt::format("policy {} is not available in this version; write one of {}", text,
                    fmt::join(kNames, ", ")));
  }
  return parse_choice<model::Policy>(text, model::parse_policy, kNames);
}

Parsed<Engine> parse_engine(std::string_view text) {
  constexpr std::array<std::string_view, 3> kNames{"vllm", "sglang", "trtllm"};
  return parse_choice<Engine>(text, model::parse_engine, kNames);
}

Parsed<Role> parse_role(std::string_view text) {
  constexpr std::array<std::string_view, 3> kNames{"prefill", "decode", "aggregated"};
  return parse_choice<Role>(text, model::parse_role, kNames);
}

std::optional<WorkerSpec> read_worker(const Node& node, const std::string& path,
                                      Problems& problems) {
  const std::size_t before = problems.count();
  WorkerSpec spec;
  const Section section(node, path, "models[].workers[]", problems);
  section.read("url", spec.endpoint, parse_worker_url);
  section.read("engine", spec.engine, parse_engine);
  section.read("role", spec.role, parse_role);
  section.read("bootstrap_port", spec.bootstrap_port, parse_port);
  if (problems.count() != before) return std::nullopt;
  if (node.find("url") == nullptr) {
    problems.add(node, path, "has no url; write url: http://host:port");
    return std::nullopt;
  }
  if (spec.bootstrap_port && (spec.engine != Engine::Sglang || spec.role != Role::Prefill)) {
    problems.add(node, section.path_of("bootstrap_port"),
                 "is only for SGLang prefill workers; remove it");
  }
  return spec;
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
  const std::vector<Node>& aliases = section.list("aliases");
  for (std::size_t i = 0; i < aliases.size(); ++i) {
    const std::string at = fmt::format("{}.aliases[{}]", path, i);
    if (auto alias = Section::read_scalar(aliases[i], at, parse_name, problems)) {
      result.aliases.push_back(*std::move(alias));
    }
  }
  const std::size_t before = problems.count();
  const std::vector<Node>& workers = section.list("workers");
  for (std::size_t i = 0; i < workers.size(); ++i) {
    std::string at = fmt::format("{}.workers[{}]", path, i);
    if (const auto spec = read_worker(workers[i], at, problems)) {
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
      problems.add(*draft.node, path,
                   fmt::format("{} is already a name of {}; names and aliases must differ",
                               shown(name), owner->second));
    };
    claim(draft.model.name, draft.path + ".name");
    for (std::size_t i = 0; i < draft.model.aliases.size(); ++i) {
      claim(draft.model.aliases[i], fmt::format("{}.aliases[{}]", draft.path, i));
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

void check_roles(const Draft& draft, Problems& problems) {
  const auto& workers = draft.workers;
  const auto has = [&](Role role) {
    return std::ranges::any_of(workers, [&](const Placed& one) { return one.spec.role == role; });
  };
  if (workers.empty()) {
    problems.add(*draft.node, draft.path + ".workers", "has no workers; give at least one");
    return;
  }
  if (!has(Role::Decode) && !has(Role::Aggregated)) {
    problems.add(*draft.node, draft.path + ".workers",
                 "has only prefill workers; add a decode or an aggregated one");
  }
  const auto is_leg = [](const Placed& one) { return one.spec.role != Role::Aggregated; };
  const auto first = std::ranges::find_if(workers, is_leg);
  if (first == workers.end()) return;
  for (const Placed& worker : workers) {
    if (!is_leg(worker) || worker.spec.engine == first->spec.engine) continue;
    problems.add(
        *worker.node, worker.path + ".engine",
        fmt::format("is {}, but {} is {}; in this version the prefill and decode workers of "
                    "one model must run one engine",
                    to_string(worker.spec.engine), place(*first), to_string(first->spec.engine)));
  }
}

}  // namespace

std::vector<Model> read_models(const Section& root, Problems& problems) {
  const std::size_t before = problems.count();
  std::vector<Draft> drafts;
  const std::vector<Node>& nodes = root.list("models");
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    drafts.push_back(read_model(nodes[i], fmt::format("models[{}]", i), problems));
  }
  if (drafts.empty() && problems.count() == before) {
    problems.add(Node{}, "models",
                 "no model is given; list at least one, or use --worker NAME=URL");
  }
  check_names(drafts, problems);
  check_duplicates(drafts, problems);
  std::vector<Model> models;
  for (Draft& draft : drafts) {
    if (draft.complete) check_roles(draft, problems);
    models.push_back(std::move(draft.model));
  }
  return models;
}

}  // namespace baton::config
