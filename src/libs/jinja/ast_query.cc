// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/ast_query.h"

#include "libs/jinja/failure.h"
#include "libs/jinja/lexer.h"
#include "libs/jinja/parser.h"
#include "libs/jinja/statements.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace baton::jinja {
namespace {

// Assignments, loops, definitions and calls of a template, in the order of its text.
struct Findings {
  struct Loop {
    const ForStatement* statement;
    std::vector<const Macro*> macros;  // around it
  };
  std::vector<const SetStatement*> assignments;
  std::vector<Loop> loops;
  std::vector<const Macro*> macros;
  std::vector<const CallExpression*> calls;

  void add(const Block& block) {
    for (const std::unique_ptr<Statement>& statement : block) add(*statement);
  }
  void add(const Statement& statement);

 private:
  void add_calls(const Expression* expression);
  void add_calls(const Macro& macro) {
    for (const Macro::Parameter& parameter : macro.parameters) add_calls(parameter.fallback.get());
  }
  std::vector<const Macro*> around_;
};

void Findings::add_calls(const Expression* expression) {
  if (!expression) return;
  if (const auto* const call = dynamic_cast<const CallExpression*>(expression))
    calls.push_back(call);
  expression->each_child([this](Expression& child) { add_calls(&child); });
}

void Findings::add(const Statement& statement) {
  if (const auto* const set = dynamic_cast<const SetStatement*>(&statement)) {
    assignments.push_back(set);
    add_calls(set->value.get());
  } else if (const auto* const output = dynamic_cast<const OutputStatement*>(&statement)) {
    add_calls(output->expression.get());
  } else if (const auto* const loop = dynamic_cast<const ForStatement*>(&statement)) {
    loops.push_back({loop, around_});
    add_calls(loop->over.get());
    add_calls(loop->condition.get());
    add(loop->body);
    add(loop->otherwise);
  } else if (const auto* const choice = dynamic_cast<const IfStatement*>(&statement)) {
    for (const IfStatement::Branch& branch : choice->branches) {
      add_calls(branch.condition.get());
      add(branch.body);
    }
    add(choice->otherwise);
  } else if (const auto* const capture = dynamic_cast<const CaptureStatement*>(&statement)) {
    for (const auto& filter : capture->filters) add_calls(filter.get());
    add(capture->body);
  } else if (const auto* const with = dynamic_cast<const WithStatement*>(&statement)) {
    for (const auto& [target, value] : with->bindings) add_calls(value.get());
    add(with->body);
  } else if (const auto* const macro = dynamic_cast<const MacroStatement*>(&statement)) {
    macros.push_back(&macro->macro);
    add_calls(macro->macro);
    around_.push_back(&macro->macro);
    add(macro->macro.body);
    around_.pop_back();
  } else if (const auto* const call = dynamic_cast<const CallStatement*>(&statement)) {
    add_calls(call->call.get());
    add_calls(call->body);
    add(call->body.body);
  }
}

bool is_name(const Expression& expression, std::string_view name) {
  const auto* const found = dynamic_cast<const NameExpression*>(&expression);
  return found && found->name == name;
}

bool is_text(const Value& value, std::string_view text) {
  return value.is_string() && value.as_string() == text;
}

bool is_member(const Expression& expression, std::string_view variable, std::string_view member) {
  if (const auto* const item = dynamic_cast<const ItemExpression*>(&expression)) {
    const auto* const key = dynamic_cast<const Constant*>(item->key.get());
    return key && is_text(key->held, member) && is_name(*item->object, variable);
  }
  const auto* const attribute = dynamic_cast<const AttributeExpression*>(&expression);
  return attribute && is_text(attribute->name, member) && is_name(*attribute->object, variable);
}

// Strips filters, tests and slices off an expression; null if a filter has no operand.
const Expression* bare(const Expression* expression) {
  while (expression) {
    if (const auto* const filter = dynamic_cast<const FilterExpression*>(expression)) {
      expression = filter->operand.get();
    } else if (const auto* const test = dynamic_cast<const TestExpression*>(expression)) {
      expression = test->operand.get();
    } else if (const auto* const slice = dynamic_cast<const SliceExpression*>(expression)) {
      expression = slice->object.get();
    } else {
      break;
    }
  }
  return expression;
}

using Names = std::vector<std::string>;

// Adds the name that something found is assigned to; false where it is no plain name.
bool take(const Target& target, Names& names) {
  if (target.form != Target::Form::Name) return false;
  if (std::ranges::find(names, target.name) == names.end()) names.push_back(target.name);
  return true;
}

// The names that a variable goes by; nullopt where the search gives up.
std::optional<Names> aliases(const Findings& findings, std::string_view variable) {
  Names names{std::string(variable)};
  for (std::size_t next = 0; next < names.size(); ++next) {
    for (const SetStatement* const assignment : findings.assignments) {
      const Expression* const value = bare(assignment->value.get());
      if (!value || !is_name(*value, names[next])) continue;
      if (!take(assignment->target, names)) return std::nullopt;
    }
  }
  return names;
}

bool is_any(const Expression& expression, const Names& names) {
  return std::ranges::any_of(names, [&](const std::string& n) { return is_name(expression, n); });
}

bool is_member_of_any(const Expression* expression, const Names& items, std::string_view member) {
  const Expression* const inner = bare(expression);
  return inner && std::ranges::any_of(
                      items, [&](const std::string& i) { return is_member(*inner, i, member); });
}

// The parameters of a macro that some call gives the member of an item.
Names parameters_given(const Findings& findings, const Macro& macro, const Names& items,
                       std::string_view member) {
  Names given;
  for (const CallExpression* const call : findings.calls) {
    if (!is_name(*call->callee, macro.name)) continue;
    const auto& positional = call->arguments.positional;
    for (std::size_t at = 0; at < std::min(positional.size(), macro.parameters.size()); ++at) {
      if (is_member_of_any(positional[at].get(), items, member))
        given.push_back(macro.parameters[at].name);
    }
    for (const auto& [name, value] : call->arguments.named) {
      const bool known = std::ranges::any_of(
          macro.parameters, [&](const Macro::Parameter& one) { return one.name == name->view(); });
      if (known && is_member_of_any(value.get(), items, member)) given.emplace_back(name->view());
    }
  }
  return given;
}

// Role. Says of one loop after another whether it goes over the member.
class LoopJudge {
 public:
  LoopJudge(const Findings& findings, const Names& items, std::string_view member,
            LoopSearch search)
      : findings_(findings), items_(items), member_(member), search_(search) {}

  bool found(const Findings::Loop& loop) const {
    const Expression* const over = loop.statement->over.get();
    if (is_member_of_any(over, items_, member_)) return true;
    const auto* const name = dynamic_cast<const NameExpression*>(over);
    if (!name || search_ == LoopSearch::Members) return false;
    const bool called_so = name->name == member_;
    if (search_ == LoopSearch::Names) return called_so;
    if (loop.macros.empty()) return called_so;
    // The engines look at the innermost of those that are given the member at all.
    for (auto macro = loop.macros.rbegin(); macro != loop.macros.rend(); ++macro) {
      const Names given = parameters_given(findings_, **macro, items_, member_);
      if (!given.empty()) return std::ranges::find(given, name->name) != given.end();
    }
    return false;
  }

 private:
  const Findings& findings_;
  const Names& items_;
  std::string_view member_;
  LoopSearch search_;
};

bool loops_in(const Block& block, std::string_view variable, std::string_view member,
              LoopSearch search) {
  Findings findings;
  findings.add(block);
  const auto sequences = aliases(findings, variable);
  if (!sequences) return false;
  Names items;
  for (const Findings::Loop& loop : findings.loops) {
    const Expression* const over = bare(loop.statement->over.get());
    if (over && is_any(*over, *sequences) && !take(loop.statement->target, items)) return false;
  }
  const LoopJudge judge(findings, items, member, search);
  for (const Findings::Loop& loop : findings.loops) {
    if (judge.found(loop)) return loop.statement->target.form == Target::Form::Name;
  }
  return false;
}

}  // namespace

bool loops_over_member(std::string_view source, std::string_view variable, std::string_view member,
                       LoopSearch search) {
  try {
    return loops_in(Parser(tokenize(source)).parse(), variable, member, search);
  } catch (const Failure&) {
    return false;
  }
}

}  // namespace baton::jinja
