// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/binder.h"
#include "libs/jinja/builtins.h"
#include "libs/jinja/failure.h"

#include <limits>

namespace baton::jinja {

std::uint16_t FunctionLayout::slot(int level, const std::string& name) {
  if (slots.size() >= std::numeric_limits<std::uint16_t>::max()) {
    raise("the template has too many variables");
  }
  return slots.try_emplace({level, name}, static_cast<std::uint16_t>(slots.size())).first->second;
}

void Symbols::define(const std::string& name, Load load) {
  places_.insert_or_assign(name,
                           Place{.function = function_, .index = function_->slot(level_, name)});
  loads_.insert_or_assign(name, load);
}

std::optional<Symbols::Place> Symbols::find(const std::string& name) const {
  for (const Symbols* scope = this; scope != nullptr; scope = scope->around_) {
    if (const auto at = scope->places_.find(name); at != scope->places_.end()) return at->second;
  }
  return std::nullopt;
}

void Symbols::load(const std::string& name) {
  if (!find(name)) define(name, {.source = Source::Resolve, .from = {}});
}

void Symbols::store(const std::string& name) {
  stores_.insert(name);
  if (places_.contains(name)) return;
  const auto outer = around_ != nullptr ? around_->find(name) : std::nullopt;
  if (outer) {
    define(name, {.source = Source::Copy, .from = *outer});
  } else {
    define(name, {.source = Source::Unset, .from = {}});
  }
}

Symbols::Place Symbols::declare_parameter(const std::string& name) {
  stores_.insert(name);
  define(name, {.source = Source::Parameter, .from = {}});
  return places_.at(name);
}

void Symbols::merge(const std::vector<Symbols>& branches) {
  std::set<std::string> stored;
  for (const Symbols& branch : branches) {
    for (const auto& name : branch.stores_) {
      if (!stores_.contains(name)) stored.insert(name);
    }
  }
  for (const Symbols& branch : branches) {
    for (const auto& [name, place] : branch.places_) places_.insert_or_assign(name, place);
    for (const auto& [name, load] : branch.loads_) loads_.insert_or_assign(name, load);
    stores_.insert(branch.stores_.begin(), branch.stores_.end());
  }
  // A variable that only some branches assign keeps its outer or the caller's value in the others.
  for (const auto& name : stored) {
    const auto outer = around_ != nullptr ? around_->find(name) : std::nullopt;
    loads_.insert_or_assign(name, outer ? Load{.source = Source::Copy, .from = *outer}
                                        : Load{.source = Source::Resolve, .from = {}});
  }
}

ScopeEntry Symbols::entry() const {
  ScopeEntry entry;
  for (const auto& [name, load] : loads_) {
    const std::uint16_t index = places_.at(name).index;
    switch (load.source) {
      case Source::Parameter:
        break;
      case Source::Resolve:
        if (is_missing_global(name)) raise("the global '{}' is not supported", name);
        entry.loads.push_back(
            {.action = ScopeEntry::Action::Resolve, .index = index, .source = {}, .name = name});
        break;
      case Source::Copy: {
        const auto hops = static_cast<std::uint16_t>(function_->depth - load.from.function->depth);
        entry.loads.push_back({.action = ScopeEntry::Action::Copy,
                               .index = index,
                               .source = {.hops = hops, .index = load.from.index},
                               .name = {}});
        break;
      }
      case Source::Unset:
        entry.loads.push_back(
            {.action = ScopeEntry::Action::Unset, .index = index, .source = {}, .name = {}});
        break;
    }
  }
  return entry;
}

}  // namespace baton::jinja
