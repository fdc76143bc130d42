// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/jinja/statements.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace baton::jinja {

// A function of the template while its variables are laid out: the template, a macro, a recursive
// loop. Scopes at the same level share the slot of a name, as they share jinja2's local variable.
struct FunctionLayout {
  explicit FunctionLayout(int nested) : depth(nested) {}
  std::uint16_t slot(int level, const std::string& name);
  const int depth;
  std::map<std::pair<int, std::string>, std::uint16_t> slots;
};

// Role. The names of one scope, by jinja2's rules: names it reads come from the outer scope or the
//   caller; names it assigns are its own and start with the outer value.
// Lifetime. During binding; the outer scope outlives it.
class Symbols {
 public:
  struct Place {
    const FunctionLayout* function;
    std::uint16_t index;
  };
  Symbols(FunctionLayout& function, const Symbols* around)
      : function_(&function), around_(around), level_(around == nullptr ? 0 : around->level_ + 1) {}

  void load(const std::string& name);
  void store(const std::string& name);
  Place declare_parameter(const std::string& name);
  // Names of branches of which at most one runs.
  void merge(const std::vector<Symbols>& branches);
  std::optional<Place> find(const std::string& name) const;
  ScopeEntry entry() const;
  FunctionLayout& function() const { return *function_; }
  // The levels of the condition of a loop, which is a function of its own, are kept apart.
  void move_to_level(int level) { level_ = level; }
  int level() const { return level_; }

 private:
  enum class Source : std::uint8_t { Parameter, Resolve, Copy, Unset };
  struct Load {
    Source source;
    Place from;  // of Copy
  };
  void define(const std::string& name, Load load);

  FunctionLayout* function_;
  const Symbols* around_;
  int level_;
  std::map<std::string, Place> places_;
  std::map<std::string, Load> loads_;
  std::set<std::string> stores_;
};

// Role. Goes over a parsed template once and gives every name its slot.
// Confinement. One parse.
class Binder {
 public:
  // Lays out the whole template and returns how many slots it needs.
  static std::size_t bind(Block& block, ScopeEntry& scope);

  SlotRef slot(const std::string& name) const;
  Symbols& symbols() { return *symbols_; }
  void block(Block& statements, bool soft);
  bool in_loop() const { return in_loop_; }

  // While it lives, names belong to an inner scope.
  class Scope {
   public:
    enum class Loop : std::uint8_t { Same, Enter, Leave };
    Scope(Binder& binder, Symbols& symbols, Loop loop = Loop::Same);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Binder& binder_;
    Symbols* outer_;
    bool outer_in_loop_;
  };

 private:
  Symbols* symbols_ = nullptr;
  bool in_loop_ = false;
};

void declare_names(const Expression& expression, Symbols& symbols);
// Whether the block reads the name before it assigns it.
bool reads_first(const Block& block, const std::string& name);

}  // namespace baton::jinja
