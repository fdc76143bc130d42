// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/builtins.h"
#include "libs/jinja/cursor.h"
#include "libs/jinja/failure.h"
#include "libs/jinja/formatting.h"
#include "libs/jinja/operators.h"
#include "libs/jinja/printing.h"
#include "libs/jinja/run.h"

#include <algorithm>
#include <array>

namespace baton::jinja {
namespace {

// The sandbox's own bound.
constexpr std::int64_t kMaxRange = 100'000;

Value range(Run&, const Value&, Arguments& arguments) {
  const std::int64_t first = require_int(arguments[0]);
  const bool one = !arguments.given(1);
  const std::int64_t start = one ? 0 : first;
  const std::int64_t stop = one ? first : require_int(arguments[1]);
  const std::int64_t step = arguments.integer(2, 1);
  if (step == 0) raise("range() arg 3 must not be zero");
  auto object = make<RangeObject>(start, stop, step);
  const std::int64_t size = object->size();
  if (size < 0 || size > kMaxRange) {
    raise("Range too big. The sandbox blocks ranges larger than MAX_RANGE ({}).", kMaxRange);
  }
  return Value(Kind::Range, std::move(object));
}

// dict(mapping or pairs, **named).
Dict make_dict(Run& run, Arguments& arguments) {
  if (arguments.size() > 1) {
    raise("dict expected at most 1 argument, got {}", arguments.size());
  }
  Dict dict;
  if (arguments.size() == 1) {
    const Value& from = arguments[0];
    if (from.is_dict()) {
      dict = from.as_dict();
    } else {
      Cursor cursor(run, from);
      Value item;
      while (cursor.next(item)) {
        List pair = to_list(run, item);
        if (pair.size() != 2) {
          raise("dictionary update sequence element #{} has length {}; 2 is required", dict.size(),
                pair.size());
        }
        require_hashable(pair[0]);
        dict.set(std::move(pair[0]), std::move(pair[1]));
      }
    }
  }
  for (auto& [name, value] : arguments.named()) dict.set(name->view(), std::move(value));
  return dict;
}

Value dict(Run& run, const Value&, Arguments& arguments) {
  return run.dict(make_dict(run, arguments));
}

Value make_namespace(Run& run, const Value&, Arguments& arguments) {
  return run.make_namespace(make_dict(run, arguments));
}

Value cycler(Run& run, const Value&, Arguments& arguments) {
  if (arguments.size() == 0) raise("at least one item has to be provided");
  return run.bounded(Value(Kind::Cycler, make<CyclerObject>(std::move(arguments.positional()))));
}

Value joiner(Run& run, const Value&, Arguments& arguments) {
  return run.bounded(
      Value(Kind::Joiner, make<JoinerObject>(arguments.given(0) ? arguments[0] : Value(", "))));
}

Value raise_exception(Run&, const Value&, Arguments& arguments) { raise("{}", str(arguments[0])); }

Value strftime_now(Run& run, const Value&, Arguments& arguments) {
  return run.text(format_time(run.now(), std::string(require_text(arguments[0]))));
}

constexpr auto kGlobals = std::to_array<Builtin>({
    {"cycler", cycler, {"*"}},
    {"dict", dict, {"*"}},
    {"joiner", joiner, {"?sep"}},
    {"namespace", make_namespace, {"*"}},
    {"raise_exception", raise_exception, {"message"}},
    {"range", range, {"start", "?stop", "?step"}},
    {"strftime_now", strftime_now, {"format"}},
});

}  // namespace

const Value* find_global(std::string_view name) {
  // Made once; renderings only read them.
  static const auto kValues = [] {
    std::array<Value, kGlobals.size()> values;
    std::ranges::transform(kGlobals, values.begin(), [](const Builtin& builtin) {
      return Value(Kind::Function, make<BoundBuiltin>(builtin, Value::none()));
    });
    return values;
  }();
  const auto* at = std::ranges::find(kGlobals, name, &Builtin::name);
  return at != kGlobals.end() ? &kValues[static_cast<std::size_t>(at - kGlobals.begin())] : nullptr;
}

// Random text is no use in a prompt.
bool is_missing_global(std::string_view name) { return name == "lipsum"; }

}  // namespace baton::jinja
