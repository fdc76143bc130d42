// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/loop.h"

#include "libs/jinja/failure.h"
#include "libs/jinja/operators.h"
#include "libs/jinja/statements.h"

#include <algorithm>
#include <utility>

namespace baton::jinja {

LoopObject::LoopObject(Run& run, const ForStatement& statement, Value over, std::int64_t depth0)
    : run_(run),
      statement_(statement),
      home_(run.activation().get()),
      over_(over),
      cursor_(run, std::move(over)),
      depth0_(depth0) {}

void LoopObject::finish() {
  home_ = nullptr;
  if (const auto known = statement_.condition ? std::nullopt : length_of(over_))
    length_ = static_cast<std::int64_t>(*known);
  over_ = before_ = current_ = Value();
  cursor_.release();
  after_.reset();
  ahead_.clear();
  last_changed_.reset();
}

bool LoopObject::pull(Value& item) {
  if (!ahead_.empty()) {
    item = std::move(ahead_.back());
    ahead_.pop_back();
    return true;
  }
  if (home_ == nullptr) return false;
  while (cursor_.next(item)) {
    if (!statement_.condition) return true;
    const Run::Visit visit(run_, Ref<Activation>::share(home_));
    if (statement_.accepts(run_, item)) return true;
  }
  return false;
}

bool LoopObject::peek() {
  if (after_) return true;
  Value item;
  if (!pull(item)) return false;
  after_ = std::move(item);
  return true;
}

bool LoopObject::advance() {
  Value item;
  if (after_) {
    item = *std::exchange(after_, std::nullopt);
  } else if (!pull(item)) {
    return false;
  }
  ++index0_;
  before_ = std::exchange(current_, std::move(item));
  return true;
}

std::int64_t LoopObject::length() {
  if (length_) return *length_;
  const auto known = statement_.condition ? std::nullopt : length_of(over_);
  if (known) {
    length_ = static_cast<std::int64_t>(*known);
  } else {
    List rest;
    Value item;
    while (pull(item)) rest.push_back(std::move(item));
    length_ = static_cast<std::int64_t>(rest.size()) + index0_ + 1 + (after_ ? 1 : 0);
    std::ranges::reverse(rest);
    ahead_ = std::move(rest);
  }
  return *length_;
}

Value LoopObject::attribute(std::string_view name) {
  if (name == "index") return Value(index0_ + 1);
  if (name == "index0") return Value(index0_);
  if (name == "first") return Value(index0_ == 0);
  if (name == "last") return Value(!peek());
  if (name == "length") return Value(length());
  if (name == "revindex") return Value(length() - index0_);
  if (name == "revindex0") return Value(length() - index0_ - 1);
  if (name == "depth") return Value(depth0_ + 1);
  if (name == "depth0") return Value(depth0_);
  if (name == "previtem") {
    return index0_ == 0 ? Value::missing_because("there is no previous item") : before_;
  }
  if (name == "nextitem") {
    return peek() ? *after_ : Value::missing_because("there is no next item");
  }
  return Value();
}

Value LoopObject::cycle(const List& items) const {
  if (items.empty()) raise("no items for cycling given");
  return items[static_cast<std::size_t>(index0_) % items.size()];
}

bool LoopObject::changed(Run& run, List values) {
  Value now = run.tuple(std::move(values));
  if (last_changed_ && equal(*last_changed_, now)) return false;
  last_changed_ = std::move(now);
  return true;
}

Ref<Activation> LoopObject::around() const {
  if (home_ == nullptr) raise("the loop is over and cannot be called any more");
  return home_->outer;
}

std::string LoopObject::repr() { return fmt::format("<LoopContext {}/{}>", index0_ + 1, length()); }

}  // namespace baton::jinja
