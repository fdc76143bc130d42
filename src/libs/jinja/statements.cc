// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/statements.h"

#include "libs/jinja/builtins.h"
#include "libs/jinja/cursor.h"
#include "libs/jinja/failure.h"
#include "libs/jinja/lookup.h"
#include "libs/jinja/loop.h"
#include "libs/jinja/printing.h"

#include <utility>

namespace baton::jinja {

Flow run_block(const Block& block, Run& run) {
  for (const auto& statement : block) {
    if (const Flow flow = statement->run(run); flow != Flow::Next) return flow;
  }
  return Flow::Next;
}

void ScopeEntry::enter(Run& run) const {
  for (const Load& load : loads) {
    Value& slot = run.slot({.hops = 0, .index = load.index});
    switch (load.action) {
      case Action::Resolve:
        slot = run.resolve(load.name);
        break;
      case Action::Copy:
        slot = Value(run.slot(load.source));
        break;
      case Action::Unset:
        slot = Value();
        break;
    }
  }
}

void Target::assign(Run& run, Value value) const {
  switch (form) {
    case Form::Name:
      run.slot(slot) = std::move(value);
      return;
    case Form::Attribute: {
      const Value& object = run.slot(slot);
      if (object.kind() != Kind::Namespace) {
        raise("cannot assign attribute on non-namespace object");
      }
      object_as<NamespaceObject>(object).attributes.set(attribute, std::move(value));
      return;
    }
    case Form::Tuple:
      break;
  }
  if (!Cursor::walks(value)) raise("cannot unpack non-iterable {} object", type_name(value));
  List items = to_list(run, value);
  if (items.size() < parts.size()) {
    raise("not enough values to unpack (expected {}, got {})", parts.size(), items.size());
  }
  if (items.size() > parts.size()) raise("too many values to unpack (expected {})", parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i].assign(run, std::move(items[i]));
}

Flow OutputStatement::run(Run& run) const {
  run.step();
  expression->print(run);
  return Flow::Next;
}

Flow TextStatement::run(Run& run) const {
  run.write(text);
  return Flow::Next;
}

Flow IfStatement::run(Run& run) const {
  run.step();
  for (const Branch& branch : branches) {
    if (branch.condition->test(run)) return run_block(branch.body, run);
  }
  return run_block(otherwise, run);
}

bool ForStatement::accepts(Run& run, const Value& item) const {
  condition_scope.enter(run);
  condition_target.assign(run, item);
  return condition->test(run);
}

bool ForStatement::walk_plainly(Run& run, const Value& values) const {
  Cursor cursor(run, values);
  bool completed = false;
  Value item;
  while (cursor.next(item)) {
    if (condition && !accepts(run, item)) continue;
    target.assign(run, std::move(item));
    scope.enter(run);
    const Flow flow = run_block(body, run);
    if (flow == Flow::Break) break;
    completed = completed || flow == Flow::Next;
  }
  return completed;
}

bool ForStatement::walk_with_loop(Run& run, const Value& values, std::int64_t depth0) const {
  auto loop = make<LoopObject>(run, *this, values, depth0);
  // However the loop ends, it no longer hangs on to the variables around it.
  struct Finish {
    LoopObject& loop;
    ~Finish() { loop.finish(); }
  } finish{*loop};
  const Value loop_value(Kind::Loop, loop);
  bool completed = false;
  while (loop->advance()) {
    run.slot(*loop_slot) = loop_value;
    target.assign(run, loop->current());
    scope.enter(run);
    const Flow flow = run_block(body, run);
    if (flow == Flow::Break) break;
    completed = completed || flow == Flow::Next;
  }
  run.slot(*loop_slot) = Value();
  return completed;
}

Flow ForStatement::run(Run& run) const {
  run.step();
  const Value values = over->value(run);
  if (recursive) {
    run.write(recurse(run, values, 0, run.activation()).as_string());
    return Flow::Next;
  }
  const bool completed = loop_slot ? walk_with_loop(run, values, 0) : walk_plainly(run, values);
  if (completed || otherwise.empty()) return Flow::Next;
  otherwise_scope.enter(run);
  return run_block(otherwise, run);
}

Value ForStatement::recurse(Run& run, const Value& values, std::int64_t depth0,
                            Ref<Activation> outer) const {
  const Run::Call call(run, slots, std::move(outer));
  Run::Capture capture(run);
  if (!walk_with_loop(run, values, depth0) && !otherwise.empty()) {
    otherwise_scope.enter(run);
    run_block(otherwise, run);
  }
  return capture.take();
}

Flow SetStatement::run(Run& run) const {
  run.step();
  target.assign(run, value->value(run));
  return Flow::Next;
}

Flow CaptureStatement::run(Run& run) const {
  run.step();
  scope.enter(run);
  Flow flow = Flow::Next;
  Value text;
  {
    Run::Capture capture(run);
    flow = run_block(body, run);
    text = capture.take();
  }
  if (flow != Flow::Next) return flow;  // what was captured is lost, as in jinja2
  for (const auto& filter : filters) text = filter->apply(run, text);
  if (target) {
    target->assign(run, std::move(text));
  } else {
    run.print(text);
  }
  return Flow::Next;
}

Flow WithStatement::run(Run& run) const {
  run.step();
  scope.enter(run);
  for (const auto& [to, value] : bindings) to.assign(run, value->value(run));
  return run_block(body, run);
}

Flow MacroStatement::run(Run& run) const {
  target.assign(run, Value(Kind::Function, make<MacroObject>(macro, run.keep_activation())));
  return Flow::Next;
}

Flow CallStatement::run(Run& run) const {
  if (!call) {
    Arguments none;
    run.write(body.call(run, run.activation(), none).as_string());
    return Flow::Next;
  }
  const Value caller(Kind::Function, make<MacroObject>(body, run.keep_activation()));
  run.print(call->call(run, &caller));
  return Flow::Next;
}

std::string MacroObject::repr() const {
  return macro.name.empty() ? "<Macro anonymous>" : "<Macro " + in_quotes(macro.name) + ">";
}

std::string Macro::shown_name() const { return name.empty() ? "None" : in_quotes(name); }

Value Macro::call(Run& run, const Ref<Activation>& outer, Arguments& arguments) const {
  auto& given = arguments.positional();
  const std::size_t taken = std::min(given.size(), parameters.size());
  bool found_caller = explicit_caller && given.size() >= parameters.size();
  std::vector<Value> values(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(taken));
  for (std::size_t i = taken; i < parameters.size(); ++i) {
    values.push_back(arguments.take_named(parameters[i].name));
    if (parameters[i].name == "caller") found_caller = true;
  }
  Value caller_value;
  if (caller && !found_caller) {
    caller_value = arguments.take_named("caller");
    if (caller_value.is_unset() || caller_value.is_none()) {
      caller_value = Value::missing_because("No caller defined");
    }
  }
  if (!named_rest && !arguments.named().empty()) {
    const std::string_view first = arguments.named().front().first->view();
    raise("macro {} takes no keyword argument {}", shown_name(), in_quotes(first));
  }
  if (!positional_rest && given.size() > parameters.size()) {
    raise("macro {} takes not more than {} argument(s)", shown_name(), parameters.size());
  }

  const Run::Call called(run, slots, outer);
  Run::Capture capture(run);
  for (std::size_t i = 0; i < parameters.size(); ++i) run.slot(parameters[i].slot) = values[i];
  if (caller) run.slot(*caller) = std::move(caller_value);
  if (named_rest) {
    Dict rest;
    for (auto& [key, value] : arguments.named()) rest.set(key->view(), std::move(value));
    run.slot(*named_rest) = run.dict(std::move(rest));
  }
  if (positional_rest) {
    run.slot(*positional_rest) =
        run.tuple(List(given.begin() + static_cast<std::ptrdiff_t>(taken), given.end()));
  }
  scope.enter(run);
  for (const Parameter& parameter : parameters) {
    if (!run.slot(parameter.slot).is_unset()) continue;
    run.slot(parameter.slot) =
        parameter.fallback ? parameter.fallback->value(run)
                           : Value::missing_because(fmt::format("parameter {} was not provided",
                                                                in_quotes(parameter.name)));
  }
  run_block(body, run);
  return capture.take();
}

}  // namespace baton::jinja
