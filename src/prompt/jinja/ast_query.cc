// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/jinja/ast_query.h"

#include "prompt/jinja/failure.h"
#include "prompt/jinja/lexer.h"
#include "prompt/jinja/parser.h"
#include "prompt/jinja/statements.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace baton::prompt::jinja {
namespace {

// What a template assigns and what it loops over, in the order of its text.
struct Findings {
  std::vector<const SetStatement*> assignments;
  std::vector<const ForStatement*> loops;

  void add(const Block& block) {
    for (const std::unique_ptr<Statement>& statement : block) add(*statement);
  }
  void add(const Statement& statement);
};

void Findings::add(const Statement& statement) {
  if (const auto* const set = dynamic_cast<const SetStatement*>(&statement)) {
    assignments.push_back(set);
  } else if (const auto* const loop = dynamic_cast<const ForStatement*>(&statement)) {
    loops.push_back(loop);
    add(loop->body);
    add(loop->otherwise);
  } else if (const auto* const choice = dynamic_cast<const IfStatement*>(&statement)) {
    for (const IfStatement::Branch& branch : choice->branches) add(branch.body);
    add(choice->otherwise);
  } else if (const auto* const capture = dynamic_cast<const CaptureStatement*>(&statement)) {
    add(capture->body);
  } else if (const auto* const with = dynamic_cast<const WithStatement*>(&statement)) {
    add(with->body);
  } else if (const auto* const macro = dynamic_cast<const MacroStatement*>(&statement)) {
    add(macro->macro.body);
  } else if (const auto* const call = dynamic_cast<const CallStatement*>(&statement)) {
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

// What is left of an expression once filters, tests and slices are taken off; null where a filter
// has nothing to filter.
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

bool loops_in(const Block& block, std::string_view variable, std::string_view member) {
  Findings findings;
  findings.add(block);
  const auto sequences = aliases(findings, variable);
  if (!sequences) return false;
  Names items;
  for (const ForStatement* const loop : findings.loops) {
    const Expression* const over = bare(loop->over.get());
    if (over && is_any(*over, *sequences) && !take(loop->target, items)) return false;
  }
  for (const ForStatement* const loop : findings.loops) {
    const Expression* const over = bare(loop->over.get());
    const bool found = over && std::ranges::any_of(items, [&](const std::string& item) {
                         return is_member(*over, item, member);
                       });
    if (found) return loop->target.form == Target::Form::Name;
  }
  return false;
}

}  // namespace

bool loops_over_member(std::string_view source, std::string_view variable,
                       std::string_view member) {
  try {
    return loops_in(Parser(tokenize(source)).parse(), variable, member);
  } catch (const Failure&) {
    return false;
  }
}

}  // namespace baton::prompt::jinja
