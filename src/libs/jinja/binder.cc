// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/binder.h"

#include "libs/jinja/failure.h"
#include "libs/jinja/printing.h"

namespace baton::jinja {
namespace {

SlotRef local(const Symbols::Place& place) { return {.hops = 0, .index = place.index}; }

// Level numbers for the condition of a loop, which must not share slots with its body.
constexpr int kConditionLevels = 10'000;

}  // namespace

void declare_names(const Expression& expression, Symbols& symbols) {
  expression.each_name([&](const std::string& name, NameUse) { symbols.load(name); });
}

bool reads_first(const Block& block, const std::string& name) {
  enum class Seen { Nothing, Read, Assigned } seen = Seen::Nothing;
  for (const auto& statement : block) {
    statement->each_name([&](const std::string& used, NameUse use) {
      if (used != name || seen != Seen::Nothing) return;
      seen = use == NameUse::Read ? Seen::Read : Seen::Assigned;
    });
  }
  return seen == Seen::Read;
}

std::size_t Binder::bind(Block& block, ScopeEntry& scope) {
  Binder binder;
  FunctionLayout function(0);
  Symbols symbols(function, nullptr);
  for (const auto& statement : block) statement->declare(symbols);
  {
    const Scope inside(binder, symbols);
    binder.block(block, false);
  }
  scope = symbols.entry();
  return function.slots.size();
}

SlotRef Binder::slot(const std::string& name) const {
  const auto place = symbols_->find(name);
  if (!place) raise("the variable {} has no place", in_quotes(name));
  return {.hops = static_cast<std::uint16_t>(symbols_->function().depth - place->function->depth),
          .index = place->index};
}

void Binder::block(Block& statements, bool soft) {
  for (const auto& statement : statements) statement->bind(*this, soft);
}

Binder::Scope::Scope(Binder& binder, Symbols& symbols, Loop loop)
    : binder_(binder), outer_(binder.symbols_), outer_in_loop_(binder.in_loop_) {
  binder.symbols_ = &symbols;
  if (loop != Loop::Same) binder.in_loop_ = loop == Loop::Enter;
}

Binder::Scope::~Scope() {
  binder_.symbols_ = outer_;
  binder_.in_loop_ = outer_in_loop_;
}

void Target::each_name(const OnName& visit) const {
  if (form == Form::Name) visit(name, NameUse::Assigned);
  for (const Target& part : parts) part.each_name(visit);
}

void Target::declare(Symbols& symbols) const {
  if (form == Form::Name) symbols.store(name);
  if (form == Form::Attribute) symbols.load(name);
  for (const Target& part : parts) part.declare(symbols);
}

void Target::declare_as_parameter(Symbols& symbols) const {
  if (form == Form::Name) symbols.declare_parameter(name);
  for (const Target& part : parts) part.declare_as_parameter(symbols);
}

void Target::bind(Binder& binder) {
  if (form != Form::Tuple) slot = binder.slot(name);
  for (Target& part : parts) part.bind(binder);
}

void OutputStatement::each_name(const OnName& visit) const { expression->each_name(visit); }
void OutputStatement::declare(Symbols& symbols) const { declare_names(*expression, symbols); }
void OutputStatement::bind(Binder& binder, bool soft) { expression->bind(binder, soft); }

void IfStatement::each_name(const OnName& visit) const {
  for (const Branch& branch : branches) {
    branch.condition->each_name(visit);
    for (const auto& statement : branch.body) statement->each_name(visit);
  }
  for (const auto& statement : otherwise) statement->each_name(visit);
}

void IfStatement::declare(Symbols& symbols) const {
  declare_names(*branches.front().condition, symbols);
  const auto inside = [](Symbols branch, const Block& body) {
    for (const auto& statement : body) statement->declare(branch);
    return branch;
  };
  // All elif together count as one branch, in which each is an `if` of its own.
  Symbols elifs = symbols;
  for (std::size_t i = 1; i < branches.size(); ++i) {
    declare_names(*branches[i].condition, elifs);
    elifs.merge({inside(elifs, branches[i].body), elifs, elifs});
  }
  const Symbols first = inside(symbols, branches.front().body);
  const Symbols last = inside(symbols, otherwise);
  symbols.merge({first, elifs, last});
}

void IfStatement::bind(Binder& binder, bool) {
  for (Branch& branch : branches) {
    branch.condition->bind(binder, true);
    binder.block(branch.body, true);
  }
  binder.block(otherwise, true);
}

void ForStatement::each_name(const OnName& visit) const {
  target.each_name(visit);
  over->each_name(visit);
  for (const auto& statement : body) statement->each_name(visit);
  for (const auto& statement : otherwise) statement->each_name(visit);
  if (condition) condition->each_name(visit);
}

void ForStatement::declare(Symbols& symbols) const { declare_names(*over, symbols); }

void ForStatement::bind(Binder& binder, bool soft) {
  const bool extended = recursive || reads_first(body, "loop");
  each_name([&](const std::string& name, NameUse use) {
    if (use == NameUse::Assigned && name == "loop") {
      raise("line {}: Can't assign to special loop variable in for-loop target", line);
    }
  });
  over->bind(binder, soft);

  Symbols& outer = binder.symbols();
  FunctionLayout own(outer.function().depth + 1);
  FunctionLayout& function = recursive ? own : outer.function();
  Symbols inner(function, &outer);
  if (extended) loop_slot = local(inner.declare_parameter("loop"));
  target.declare_as_parameter(inner);
  for (const auto& statement : body) statement->declare(inner);
  {
    const Binder::Scope scope_inside(binder, inner, Binder::Scope::Loop::Enter);
    target.bind(binder);
    binder.block(body, false);
  }
  scope = inner.entry();

  if (condition) {
    Symbols checked(function, &outer);
    checked.move_to_level(checked.level() + kConditionLevels);
    condition_target = target;
    condition_target.declare_as_parameter(checked);
    declare_names(*condition, checked);
    const Binder::Scope scope_inside(binder, checked);
    condition_target.bind(binder);
    condition->bind(binder, false);
    condition_scope = checked.entry();
  }
  if (!otherwise.empty()) {
    Symbols alternative(function, &outer);
    for (const auto& statement : otherwise) statement->declare(alternative);
    const Binder::Scope scope_inside(
        binder, alternative, recursive ? Binder::Scope::Loop::Leave : Binder::Scope::Loop::Same);
    binder.block(otherwise, false);
    otherwise_scope = alternative.entry();
  }
  slots = own.slots.size();
}

void SetStatement::each_name(const OnName& visit) const {
  target.each_name(visit);
  value->each_name(visit);
}
void SetStatement::declare(Symbols& symbols) const {
  declare_names(*value, symbols);
  target.declare(symbols);
}
void SetStatement::bind(Binder& binder, bool soft) {
  target.bind(binder);
  value->bind(binder, soft);
}

void CaptureStatement::each_name(const OnName& visit) const {
  if (target) target->each_name(visit);
  for (const auto& filter : filters) filter->each_name(visit);
  for (const auto& statement : body) statement->each_name(visit);
}

void CaptureStatement::declare(Symbols& symbols) const {
  if (target) {
    target->declare(symbols);
  } else {
    for (const auto& filter : filters) declare_names(*filter, symbols);
  }
}

void CaptureStatement::bind(Binder& binder, bool) {
  Symbols& outer = binder.symbols();
  Symbols inner(outer.function(), &outer);
  for (const auto& statement : body) statement->declare(inner);
  for (const auto& filter : filters) declare_names(*filter, inner);
  {
    const Binder::Scope inside(binder, inner);
    binder.block(body, false);
    for (const auto& filter : filters) filter->bind(binder, false);
  }
  scope = inner.entry();
  if (target) target->bind(binder);
}

void WithStatement::each_name(const OnName& visit) const {
  for (const auto& [to, value] : bindings) to.each_name(visit);
  for (const auto& [to, value] : bindings) value->each_name(visit);
  for (const auto& statement : body) statement->each_name(visit);
}

void WithStatement::declare(Symbols& symbols) const {
  for (const auto& [to, value] : bindings) declare_names(*value, symbols);
}

void WithStatement::bind(Binder& binder, bool soft) {
  for (auto& [to, value] : bindings) value->bind(binder, soft);
  Symbols& outer = binder.symbols();
  Symbols inner(outer.function(), &outer);
  for (const auto& [to, value] : bindings) to.declare_as_parameter(inner);
  for (const auto& statement : body) statement->declare(inner);
  const Binder::Scope inside(binder, inner);
  for (auto& [to, value] : bindings) to.bind(binder);
  binder.block(body, false);
  scope = inner.entry();
}

void Macro::each_name(const OnName& visit) const {
  for (const Parameter& parameter : parameters) visit(parameter.name, NameUse::Assigned);
  for (const Parameter& parameter : parameters) {
    if (parameter.fallback) parameter.fallback->each_name(visit);
  }
  for (const auto& statement : body) statement->each_name(visit);
}

void Macro::bind(Binder& binder, int line) {
  Symbols& outer = binder.symbols();
  FunctionLayout function(outer.function().depth + 1);
  Symbols inner(function, &outer);
  const auto has = [&](std::string_view wanted) {
    for (const Parameter& parameter : parameters) {
      if (parameter.name == wanted) return true;
    }
    return false;
  };
  for (const Parameter& parameter : parameters) inner.declare_parameter(parameter.name);
  explicit_caller = has("caller");
  if (reads_first(body, "caller")) {
    if (!explicit_caller) {
      caller = local(inner.declare_parameter("caller"));
    } else {
      for (const Parameter& parameter : parameters) {
        if (parameter.name == "caller" && !parameter.fallback) {
          raise(
              "line {}: When defining macros or call blocks the special \"caller\" argument must "
              "be omitted or be given a default.",
              line);
        }
      }
    }
  }
  if (!has("kwargs") && reads_first(body, "kwargs")) {
    named_rest = local(inner.declare_parameter("kwargs"));
  }
  if (!has("varargs") && reads_first(body, "varargs")) {
    positional_rest = local(inner.declare_parameter("varargs"));
  }
  for (const Parameter& parameter : parameters) {
    if (parameter.fallback) declare_names(*parameter.fallback, inner);
  }
  for (const auto& statement : body) statement->declare(inner);
  const Binder::Scope inside(binder, inner, Binder::Scope::Loop::Leave);
  for (Parameter& parameter : parameters) {
    parameter.slot = binder.slot(parameter.name);
    if (parameter.fallback) parameter.fallback->bind(binder, false);
  }
  binder.block(body, false);
  scope = inner.entry();
  slots = function.slots.size();
}

void MacroStatement::each_name(const OnName& visit) const { macro.each_name(visit); }
void MacroStatement::declare(Symbols& symbols) const { symbols.store(macro.name); }
void MacroStatement::bind(Binder& binder, bool) {
  target.bind(binder);
  macro.bind(binder, line);
}

void CallStatement::each_name(const OnName& visit) const {
  if (call) call->each_name(visit);
  body.each_name(visit);
}
void CallStatement::declare(Symbols& symbols) const {
  if (call) declare_names(*call, symbols);
}
void CallStatement::bind(Binder& binder, bool soft) {
  if (call) call->bind(binder, soft);
  body.bind(binder, line);
}

void LoopControlStatement::bind(Binder& binder, bool) {
  if (binder.in_loop()) return;
  raise("line {}: '{}' outside of a loop", line, flow == Flow::Break ? "break" : "continue");
}

}  // namespace baton::jinja
