// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/failure.h"
#include "libs/jinja/objects.h"
#include "libs/jinja/operators.h"
#include "libs/jinja/printing.h"
#include "libs/jinja/sorting.h"
#include "libs/jinja/unicode.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <vector>

namespace baton::jinja {
namespace {

std::string json_float(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return float_repr(value);
}

class Dumper {
 public:
  Dumper(std::string& out, const JsonStyle& style) : out_(out), style_(style) {}

  void value(const Value& value, std::size_t level) {
    check_printed(out_);
    switch (value.kind()) {
      case Kind::None:
        out_ += "null";
        break;
      case Kind::Bool:
        out_ += value.as_bool() ? "true" : "false";
        break;
      case Kind::Int:
      case Kind::BigInt:
        append_str(out_, value);
        break;
      case Kind::Float:
        out_ += json_float(value.as_float());
        break;
      case Kind::String:
        string(value.as_string());
        break;
      case Kind::List:
      case Kind::Tuple:
        array(value.as_list(), level);
        break;
      case Kind::Dict:
        object(value.as_dict(), level);
        break;
      default:
        raise("Object of type {} is not JSON serializable", type_name(value));
    }
  }

 private:
  void array(const List& items, std::size_t level) {
    if (items.empty()) {
      out_ += "[]";
      return;
    }
    out_ += '[';
    for (std::size_t i = 0; i < items.size(); ++i) {
      between(i == 0, level + 1);
      value(items[i], level + 1);
    }
    if (style_.indented) new_line(level);
    out_ += ']';
  }

  void object(const Dict& dict, std::size_t level) {
    if (dict.empty()) {
      out_ += "{}";
      return;
    }
    out_ += '{';
    if (style_.sorted) {
      std::vector<const Dict::Entry*> entries;
      for (const auto& entry : dict) entries.push_back(&entry);
      merge_sort(entries, [](const auto* a, const auto* b) {
        return compare(Comparison::Less, a->key, b->key);
      });
      for (std::size_t i = 0; i < entries.size(); ++i) member(*entries[i], i == 0, level);
    } else {
      bool first = true;
      for (const auto& entry : dict) {
        member(entry, first, level);
        first = false;
      }
    }
    if (style_.indented) new_line(level);
    out_ += '}';
  }

  void member(const Dict::Entry& entry, bool first, std::size_t level) {
    between(first, level + 1);
    const Value& key = entry.key;
    switch (key.kind()) {
      case Kind::String:
        string(key.as_string());
        break;
      case Kind::None:
        out_ += "\"null\"";
        break;
      case Kind::Bool:
        out_ += key.as_bool() ? "\"true\"" : "\"false\"";
        break;
      case Kind::Int:
      case Kind::BigInt:
        out_ += '"' + str(key) + '"';
        break;
      case Kind::Float:
        out_ += '"' + json_float(key.as_float()) + '"';
        break;
      default:
        raise("keys must be str, int, float, bool or None, not {}", type_name(key));
    }
    out_ += style_.key_separator;
    value(entry.value, level + 1);
  }

  void between(bool first, std::size_t level) {
    if (!first) out_ += style_.item_separator;
    if (style_.indented) new_line(level);
  }

  void new_line(std::size_t level) {
    out_ += '\n';
    for (std::size_t i = 0; i < level; ++i) out_ += style_.indent;
  }

  void string(std::string_view text) {
    out_ += '"';
    std::size_t plain = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      const bool foreign = byte >= 0x80 && style_.ascii;
      if (byte >= 0x20 && byte != '"' && byte != '\\' && !foreign) {
        continue;
      }
      out_ += text.substr(plain, i - plain);
      std::string_view rest = text.substr(i);
      escaped(take_code_point(rest));
      i = text.size() - rest.size() - 1;
      plain = i + 1;
    }
    out_ += text.substr(plain);
    out_ += '"';
  }

  void escaped(char32_t c) {
    switch (c) {
      case '"':
        out_ += "\\\"";
        return;
      case '\\':
        out_ += "\\\\";
        return;
      case '\n':
        out_ += "\\n";
        return;
      case '\r':
        out_ += "\\r";
        return;
      case '\t':
        out_ += "\\t";
        return;
      case '\f':
        out_ += "\\f";
        return;
      case '\b':
        out_ += "\\b";
        return;
      default:
        break;
    }
    const auto unit = [&](std::uint32_t code) {
      fmt::format_to(std::back_inserter(out_), "\\u{:04x}", code);
    };
    auto code = static_cast<std::uint32_t>(c);
    if (code >= 0x10000) {
      code -= 0x10000;
      unit(0xD800 + (code >> 10));
      unit(0xDC00 + (code & 0x3FF));
    } else {
      unit(code);
    }
  }

  std::string& out_;
  const JsonStyle& style_;
};

}  // namespace

std::string json_dumps(const Value& value, const JsonStyle& style) {
  std::string out;
  Dumper(out, style).value(value, 0);
  return out;
}

}  // namespace baton::jinja
