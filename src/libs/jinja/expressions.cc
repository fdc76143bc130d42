// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/ast.h"
#include "libs/jinja/binder.h"
#include "libs/jinja/builtins.h"
#include "libs/jinja/cursor.h"
#include "libs/jinja/failure.h"
#include "libs/jinja/lookup.h"
#include "libs/jinja/printing.h"

namespace baton::jinja {

void Expression::print(Run& run) const {
  Value scratch;
  run.print(evaluate(run, scratch));
}

bool Expression::test(Run& run) const {
  Value scratch;
  return truthy(evaluate(run, scratch));
}

Value Expression::value(Run& run) const {
  Value scratch;
  const Value& result = evaluate(run, scratch);
  return &result == &scratch ? std::move(scratch) : result;
}

void Expression::each_name(const OnName& visit) const {
  each_child([&](Expression& child) { child.each_name(visit); });
}

void Expression::bind(Binder& binder, bool soft) {
  each_child([&](Expression& child) { child.bind(binder, soft); });
}

const Value& NameExpression::evaluate(Run& run, Value& scratch) const {
  const Value& found = run.slot(slot);
  if (!found.is_unset()) return found;
  scratch = Value::missing(text);
  return scratch;
}

void NameExpression::bind(Binder& binder, bool) { slot = binder.slot(name); }

const Value& SequenceExpression::evaluate(Run& run, Value& scratch) const {
  List values;
  values.reserve(items.size());
  for (const auto& item : items) values.push_back(item->value(run));
  scratch = form == Form::List ? run.list(std::move(values)) : run.tuple(std::move(values));
  return scratch;
}

void SequenceExpression::each_child(const std::function<void(Expression&)>& visit) const {
  for (const auto& item : items) visit(*item);
}

const Value& DictExpression::evaluate(Run& run, Value& scratch) const {
  Dict dict;
  dict.reserve(entries.size());
  for (const auto& [key, value] : entries) {
    Value name = key->value(run);
    require_hashable(name);
    dict.set(std::move(name), value->value(run));
  }
  scratch = run.dict(std::move(dict));
  return scratch;
}

void DictExpression::each_child(const std::function<void(Expression&)>& visit) const {
  for (const auto& [key, value] : entries) {
    visit(*key);
    visit(*value);
  }
}

const Value& UnaryExpression::evaluate(Run& run, Value& scratch) const {
  Value held;
  const Value& of = operand->evaluate(run, held);
  switch (operation) {
    case Operation::Not:
      scratch = Value(!truthy(of));
      break;
    case Operation::Negative:
      scratch = negated(of);
      break;
    case Operation::Positive:
      scratch = positive(of);
      break;
  }
  return scratch;
}

const Value& ArithmeticExpression::evaluate(Run& run, Value& scratch) const {
  if (chained && operation == Arithmetic::Add) {
    // A long sum of strings is put together once, not once for each plus.
    Run::Capture capture(run);
    if (print_text(run, scratch)) scratch = capture.take();
    return scratch;
  }
  Value held_left;
  const Value& a = left->evaluate(run, held_left);
  Value held_right;
  const Value& b = right->evaluate(run, held_right);
  scratch = arithmetic(run, operation, a, b);
  return scratch;
}

// Writes a + b + c piece by piece where all are plain strings, so that no sum is made of them. From
// the first piece on that is none, the rest is added up in `sum`, which begins with what was written.
bool ArithmeticExpression::print_text(Run& run, Value& sum) const {
  const auto plain = [](const Value& value) { return value.is_string() && !value.is_markup(); };
  const std::size_t before = run.output().size();
  Value held;
  bool written = false;
  if (chained) {
    written = static_cast<const ArithmeticExpression&>(*left).print_text(run, held);
  } else {
    const Value& a = left->evaluate(run, held);
    if (plain(a)) {
      run.write(a.as_string());
      written = true;
    } else if (&a != &held) {
      held = a;
    }
  }
  Value held_right;
  const Value& b = right->evaluate(run, held_right);
  if (written && plain(b)) {
    run.write(b.as_string());
    return true;
  }
  if (written) {
    held = Value(run.output().substr(before));
    run.output().resize(before);
  }
  sum = arithmetic(run, Arithmetic::Add, held, b);
  return false;
}

void ArithmeticExpression::print(Run& run) const {
  if (operation != Arithmetic::Add) {
    Expression::print(run);
    return;
  }
  Value sum;
  if (!print_text(run, sum)) run.print(sum);
}

void ArithmeticExpression::each_child(const std::function<void(Expression&)>& visit) const {
  visit(*left);
  visit(*right);
}

const Value& LogicExpression::evaluate(Run& run, Value& scratch) const {
  const Value& a = left->evaluate(run, scratch);
  if (truthy(a) == (operation == Operation::Or)) return a;
  return right->evaluate(run, scratch);
}

void LogicExpression::each_child(const std::function<void(Expression&)>& visit) const {
  visit(*left);
  visit(*right);
}

const Value& ConcatExpression::evaluate(Run& run, Value& scratch) const {
  std::string out;
  for (const auto& part : parts) {
    Value held;
    append_str(out, part->evaluate(run, held));
  }
  scratch = run.text(std::move(out));
  return scratch;
}

void ConcatExpression::print(Run& run) const {
  for (const auto& part : parts) part->print(run);
}

void ConcatExpression::each_child(const std::function<void(Expression&)>& visit) const {
  for (const auto& part : parts) visit(*part);
}

const Value& CompareExpression::evaluate(Run& run, Value& scratch) const {
  Value held;
  const Value* a = &first->evaluate(run, held);
  for (const Step& step : steps) {
    Value held_next;
    const Value& b = step.operand->evaluate(run, held_next);
    const bool holds = step.membership == Membership::No
                           ? compare(step.comparison, *a, b)
                           : contains(run, b, *a) == (step.membership == Membership::In);
    if (!holds) {
      scratch = Value(false);
      return scratch;
    }
    if (&b == &held_next) {
      held = std::move(held_next);
      a = &held;
    } else {
      a = &b;
    }
  }
  scratch = Value(true);
  return scratch;
}

void CompareExpression::each_child(const std::function<void(Expression&)>& visit) const {
  visit(*first);
  for (const Step& step : steps) visit(*step.operand);
}

const Value& ConditionalExpression::evaluate(Run& run, Value& scratch) const {
  if (test_->test(run)) return then->evaluate(run, scratch);
  if (otherwise) return otherwise->evaluate(run, scratch);
  scratch = Value::missing_because(
      fmt::format("the inline if-expression on line {} evaluated to false and no else section was "
                  "defined.",
                  line));
  return scratch;
}

void ConditionalExpression::print(Run& run) const {
  if (test_->test(run)) {
    then->print(run);
  } else if (otherwise) {
    otherwise->print(run);
  }
}

void ConditionalExpression::each_child(const std::function<void(Expression&)>& visit) const {
  visit(*test_);
  visit(*then);
  if (otherwise) visit(*otherwise);
}

void ConditionalExpression::bind(Binder& binder, bool) { Expression::bind(binder, true); }

}  // namespace baton::jinja
