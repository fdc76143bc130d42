// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/builtins.h"
#include "libs/jinja/failure.h"
#include "libs/jinja/operators.h"
#include "libs/jinja/printing.h"

#include <algorithm>

namespace baton::jinja {
namespace {

std::string_view plain(std::string_view parameter) {
  if (parameter.starts_with('?')) parameter.remove_prefix(1);
  return parameter;
}

}  // namespace

void Arguments::add_named(Ref<Text> name, Value value) {
  for (const auto& [known, held] : named_) {
    if (known->view() == name->view()) {
      raise("got multiple values for keyword argument {}", in_quotes(name->view()));
    }
  }
  named_.emplace_back(std::move(name), std::move(value));
}

Value Arguments::take_named(std::string_view name) {
  for (auto at = named_.begin(); at != named_.end(); ++at) {
    if (at->first->view() != name) continue;
    Value value = std::move(at->second);
    named_.erase(at);
    return value;
  }
  return Value();
}

void Arguments::bind(const Builtin& builtin) {
  const auto& parameters = builtin.parameters;
  if (parameters[0] == "*") return;
  const auto count =
      static_cast<std::size_t>(std::ranges::find(parameters, "") - parameters.begin());
  if (positional_.size() > count) {
    raise("{}() takes at most {} arguments ({} given)", builtin.name, count, positional_.size());
  }
  const std::size_t given_count = positional_.size();
  positional_.resize(count);
  for (auto& [name, value] : named_) {
    const auto at = static_cast<std::size_t>(std::ranges::find(parameters, name->view(), plain) -
                                             parameters.begin());
    if (at >= count) {
      raise("{}() got an unexpected keyword argument {}", builtin.name, in_quotes(name->view()));
    }
    if (at < given_count || given(at)) {
      raise("{}() got multiple values for argument {}", builtin.name, in_quotes(name->view()));
    }
    positional_[at] = std::move(value);
  }
  named_.clear();
  for (std::size_t i = given_count; i < count; ++i) {
    if (!given(i) && !parameters[i].starts_with('?')) {
      raise("{}() missing required argument {}", builtin.name, in_quotes(parameters[i]));
    }
  }
}

std::int64_t Arguments::integer(std::size_t index, std::int64_t fallback) const {
  return given(index) ? require_int(positional_[index]) : fallback;
}

bool Arguments::truth(std::size_t index, bool fallback) const {
  return given(index) ? truthy(positional_[index]) : fallback;
}

}  // namespace baton::jinja
