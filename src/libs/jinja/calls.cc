// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/ast.h"
#include "libs/jinja/builtins.h"
#include "libs/jinja/cursor.h"
#include "libs/jinja/failure.h"
#include "libs/jinja/lookup.h"
#include "libs/jinja/printing.h"

namespace baton::jinja {
namespace {

// Hands on what was found in `object`: by reference while the object itself stays, else by value.
const Value& found_in(const Value& object, const Value& held, const Value& found, Value& inner,
                      Value& scratch) {
  if (&found == &inner) {
    scratch = std::move(inner);
    return scratch;
  }
  if (&object != &held) return found;
  scratch = Value(found);
  return scratch;
}

}  // namespace

AttributeExpression::AttributeExpression(int at_line, ExpressionPtr of, std::string attribute)
    : Expression(at_line),
      object(std::move(of)),
      name(std::move(attribute)),
      text_method(find_text_method(name.as_string())),
      list_method(find_list_method(name.as_string())),
      dict_method(find_dict_method(name.as_string())),
      only_item_of_dict(!has_dict_attribute(name.as_string())) {}

const Value& AttributeExpression::evaluate(Run& run, Value& scratch) const {
  Value held;
  const Value& of = object->evaluate(run, held);
  if (of.is_dict() && only_item_of_dict) {
    if (const Value* found = of.as_dict().find(name.as_string())) {
      if (&of != &held) return *found;
      scratch = Value(*found);
    } else {
      scratch = Value::missing(name, Kind::Dict);
    }
    return scratch;
  }
  Value inner;
  return found_in(of, held, find_attribute(run, of, name, inner), inner, scratch);
}

const Value& ItemExpression::evaluate(Run& run, Value& scratch) const {
  Value held;
  const Value& of = object->evaluate(run, held);
  Value held_key;
  const Value& at = key->evaluate(run, held_key);
  Value inner;
  return found_in(of, held, find_item(run, of, at, inner), inner, scratch);
}

void ItemExpression::each_child(const std::function<void(Expression&)>& visit) const {
  visit(*object);
  visit(*key);
}

const Value& SliceExpression::evaluate(Run& run, Value& scratch) const {
  Value held;
  const Value& of = object->evaluate(run, held);
  const Value from = start ? start->value(run) : Value();
  const Value to = stop ? stop->value(run) : Value();
  const Value by = step ? step->value(run) : Value();
  scratch = slice_of(run, of, from, to, by);
  return scratch;
}

void SliceExpression::each_child(const std::function<void(Expression&)>& visit) const {
  visit(*object);
  for (const auto* part : {&start, &stop, &step}) {
    if (*part) visit(**part);
  }
}

void CallArguments::evaluate(Run& run, Arguments& into) const {
  into.positional().reserve(positional.size());
  for (const auto& argument : positional) into.add(argument->value(run));
  if (spread) {
    for (Value& item : to_list(run, spread->value(run))) into.add(std::move(item));
  }
  for (const auto& [name, argument] : named) into.add_named(name, argument->value(run));
  if (!spread_named) return;
  const Value mapping = spread_named->value(run);
  if (!mapping.is_dict()) raise("argument after ** must be a mapping, not {}", type_name(mapping));
  for (const auto& [key, value] : mapping.as_dict()) {
    if (!key.is_string()) raise("keywords must be strings");
    into.add_named(make<Text>(std::string(key.as_string())), value);
  }
}

void CallArguments::each_child(const std::function<void(Expression&)>& visit) const {
  for (const auto& argument : positional) visit(*argument);
  for (const auto& [name, argument] : named) visit(*argument);
  if (spread) visit(*spread);
  if (spread_named) visit(*spread_named);
}

const Value& CallExpression::evaluate(Run& run, Value& scratch) const {
  scratch = call(run, nullptr);
  return scratch;
}

Value CallExpression::call(Run& run, const Value* caller) const {
  // A method is called on its object directly, without making a value of it.
  if (attribute != nullptr && caller == nullptr) {
    Value held;
    const Value& object = attribute->object->evaluate(run, held);
    const Builtin* method = object.is_string() ? attribute->text_method
                            : object.is_list() ? attribute->list_method
                            : object.is_dict() ? attribute->dict_method
                                               : nullptr;
    if (method != nullptr) {
      run.step();
      Arguments with;
      arguments.evaluate(run, with);
      return (*method)(run, object, with);
    }
    Value inner;
    const Value callable = find_attribute(run, object, attribute->name, inner);
    Arguments with;
    arguments.evaluate(run, with);
    return call_value(run, callable, with);
  }
  const Value callable = callee->value(run);
  Arguments with;
  arguments.evaluate(run, with);
  if (caller != nullptr) with.add_named(make<Text>("caller"), *caller);
  return call_value(run, callable, with);
}

void CallExpression::each_child(const std::function<void(Expression&)>& visit) const {
  visit(*callee);
  arguments.each_child(visit);
}

FilterExpression::FilterExpression(int at_line, ExpressionPtr what, std::string called,
                                   CallArguments with)
    : Expression(at_line),
      operand(std::move(what)),
      name(std::move(called)),
      filter(find_filter(name)),
      arguments(std::move(with)) {}

const Value& FilterExpression::evaluate(Run& run, Value& scratch) const {
  Value held;
  const Value& to = operand->evaluate(run, held);
  scratch = apply(run, to);
  return scratch;
}

Value FilterExpression::apply(Run& run, const Value& to) const {
  if (filter == nullptr) raise("No filter named {} found.", in_quotes(name));
  run.step();
  Arguments with;
  arguments.evaluate(run, with);
  return (*filter)(run, to, with);
}

void FilterExpression::each_child(const std::function<void(Expression&)>& visit) const {
  if (operand) visit(*operand);
  arguments.each_child(visit);
}

void FilterExpression::bind(Binder& binder, bool soft) {
  if (filter == nullptr && !soft) raise("line {}: No filter named {}.", line, in_quotes(name));
  Expression::bind(binder, soft);
}

TestExpression::TestExpression(int at_line, ExpressionPtr what, std::string called,
                               CallArguments with)
    : Expression(at_line),
      operand(std::move(what)),
      name(std::move(called)),
      builtin(find_test(name)),
      arguments(std::move(with)) {}

const Value& TestExpression::evaluate(Run& run, Value& scratch) const {
  if (builtin == nullptr) raise("No test named {} found.", in_quotes(name));
  Value held;
  const Value& of = operand->evaluate(run, held);
  Arguments with;
  arguments.evaluate(run, with);
  scratch = (*builtin)(run, of, with);
  return scratch;
}

void TestExpression::each_child(const std::function<void(Expression&)>& visit) const {
  visit(*operand);
  arguments.each_child(visit);
}

void TestExpression::bind(Binder& binder, bool soft) {
  if (builtin == nullptr && !soft) raise("line {}: No test named {}.", line, in_quotes(name));
  Expression::bind(binder, soft);
}

}  // namespace baton::jinja
