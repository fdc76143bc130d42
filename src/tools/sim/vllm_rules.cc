// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// Rules between the fields of a body: tools, log-probabilities, formats.
#include "tools/sim/dialect_fields.h"
#include "tools/sim/vllm_body.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace baton::sim {
namespace {

using nlohmann::json;

constexpr std::string_view kToolChoiceUsage =
    R"(Correct usage: `{"type": "function", "function": {"name": "my_function"}}`)";

// Equal to Python's str().
std::string python_text(const json& value) {
  if (value.is_null()) return "None";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::unexpected<Error> refuse_field(std::string_view message, std::string_view parameter,
                                    std::string_view value = {}) {
  return fail(refused_parameter(message, parameter, value));
}

bool has_function(const json& tools, const std::string& name) {
  return std::ranges::any_of(tools, [&name](const json& tool) {
    return tool.is_object() && tool.value("/function/name"_json_pointer, json()) == name;
  });
}

Result<void> check_named_tool(const json& choice, const json& tools) {
  const json* function = field(choice, "function");
  if (function == nullptr || !function->is_object()) {
    return refuse_field(
        fmt::format("Invalid value for `function`: `{}` in `tool_choice`! {}",
                    python_text(choice.value("function", json())), kToolChoiceUsage),
        "tool_choice.function");
  }
  const auto name = function->find("name");
  if (name == function->end()) {
    return refuse_field(
        fmt::format("Expected field `name` in `function` in `tool_choice`! {}", kToolChoiceUsage),
        "tool_choice.function.name");
  }
  if (!name->is_string() || name->get_ref<const std::string&>().empty()) {
    return refuse_field(fmt::format("Invalid `name` in `function`: `{}` in `tool_choice`! {}",
                                    python_text(*name), kToolChoiceUsage),
                        "tool_choice.function.name");
  }
  if (tools.is_array() && has_function(tools, name->get<std::string>())) return {};
  return refuse_field(
      "The tool specified in `tool_choice` does not match any of the specified `tools`",
      "tool_choice");
}

// The effective `tool_choice`; "auto" if there are tools and it is not set.
json tool_choice_of(const json& body) {
  const auto said = body.find("tool_choice");
  if (said != body.end()) return *said;
  return field(body, "tools") != nullptr ? json("auto") : json("none");
}

Result<void> check_count_of_logprobs(const json& body, const char* name) {
  const json* value = field(body, name);
  if (value == nullptr) return {};
  if (!value->is_number() && !value->is_boolean())
    return refuse_field(fmt::format("`{}` must be an integer.", name), name, python_text(*value));
  if (value->is_number() && *value < 0 && *value != -1) {
    return refuse_field(fmt::format("`{}` must be a positive value or -1.", name), name,
                        python_text(*value));
  }
  return {};
}

// The types that a JSON schema knows; a grammar is made of them alone.
Result<void> check_schema(const json& schema) {
  static constexpr std::array<std::string_view, 7> kTypes{"object",  "array",   "string", "number",
                                                          "integer", "boolean", "null"};
  if (schema.is_array()) {
    for (const json& one : schema) {
      if (auto checked = check_schema(one); !checked) return checked;
    }
    return {};
  }
  if (!schema.is_object()) return {};
  for (const auto& [name, value] : schema.items()) {
    if (name == "enum" || name == "const" || name == "default" || name == "examples") continue;
    if (name == "type" && value.is_string()) {
      if (std::ranges::find(kTypes, value.get<std::string>()) == kTypes.end())
        return fail(refused_request(
            fmt::format("Grammar error: Invalid type: {}", value.get<std::string>())));
      continue;
    }
    if (name == "properties" && value.is_object()) {
      for (const json& one : value) {
        if (auto checked = check_schema(one); !checked) return checked;
      }
    } else if (auto checked = check_schema(value); !checked) {
      return checked;
    }
  }
  return {};
}

// Checks only the groups of a regular expression.
bool is_balanced(std::string_view regex) {
  int open = 0;
  for (std::size_t i = 0; i < regex.size() && open >= 0; ++i) {
    if (regex[i] == '\\') {
      ++i;
    } else if (regex[i] == '(') {
      ++open;
    } else if (regex[i] == ')') {
      --open;
    }
  }
  return open == 0;
}

}  // namespace

Result<void> check_vllm_tools(const json& body) {
  const auto tools = body.find("tools");
  const bool given = tools != body.end() && !tools->is_null();
  if (given && tools->is_array() && tools->empty()) {
    return refuse_field(
        "`tools` must not be an empty array. Either provide at least one tool or omit the field "
        "entirely.",
        "tools");
  }
  const json choice = tool_choice_of(body);
  if (choice == "none" || choice.is_null()) return {};
  if (!given) return refuse_field("When using `tool_choice`, `tools` must be set.", "tool_choice");
  if (choice.is_object()) return check_named_tool(choice, *tools);
  if (choice == "auto" || choice == "required") return {};
  return refuse_field(
      fmt::format("Invalid value for `tool_choice`: {}! Only named tools, \"none\", "
                  "\"auto\" or \"required\" are supported.",
                  python_text(choice)),
      "tool_choice");
}

Result<void> check_vllm_tool_parser(const Options& options, const json& body) {
  const json choice = tool_choice_of(body);
  if (field(body, "tools") == nullptr || choice.is_null() || choice == "none") return {};
  const bool parses = !options.tool_call_parser.empty();
  if (choice == "auto") {
    if (parses && options.auto_tool_choice) return {};
    return fail(refused_request(
        R"("auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set)"));
  }
  if (parses) return {};
  if (choice == "required") {
    return fail(refused_request(R"(tool_choice="required" requires --tool-call-parser to be set)"));
  }
  return fail(refused_request(
      fmt::format(R"(tool_choice=function "{}" requires --tool-call-parser to be set)",
                  python_text(choice["function"]["name"]))));
}

Result<void> check_vllm_logprobs(Api api, const json& body) {
  const char* top = api == Api::Chat ? "top_logprobs" : "logprobs";
  for (const char* name : {"prompt_logprobs", top}) {
    const json* value = field(body, name);
    if (value != nullptr && !value->is_number() && !value->is_boolean()) {
      return refuse_field(fmt::format("`{}` must be an integer.", name), name, python_text(*value));
    }
  }
  const json* of_prompt = field(body, "prompt_logprobs");
  const json* stream = field(body, "stream");
  if (of_prompt != nullptr && stream != nullptr && *stream != false &&
      (*of_prompt > 0 || *of_prompt == -1)) {
    return refuse_field("`prompt_logprobs` are not available when `stream=True`.",
                        "prompt_logprobs");
  }
  if (auto checked = check_count_of_logprobs(body, "prompt_logprobs"); !checked) return checked;
  if (auto checked = check_count_of_logprobs(body, top); !checked) return checked;
  if (api == Api::Completions) return {};
  const json* best = field(body, "top_logprobs");
  const json* wanted = field(body, "logprobs");
  if (best != nullptr && *best != 0 && (wanted == nullptr || *wanted == false)) {
    return refuse_field("when using `top_logprobs`, `logprobs` must be set to true.",
                        "top_logprobs");
  }
  return {};
}

Result<void> check_vllm_formats(const json& body) {
  if (const json* constraint = field(body, "structured_outputs");
      constraint != nullptr && constraint->is_object()) {
    int kinds = 0;
    for (const char* kind : {"json", "regex", "choice"}) {
      if (field(*constraint, kind) != nullptr) ++kinds;
    }
    if (kinds > 1) {
      return fail(refused_request(
          "You can only use one kind of constraints for structured outputs ('json', 'regex' or "
          "'choice')."));
    }
    if (const json* regex = string_field(*constraint, "regex");
        regex != nullptr && !is_balanced(regex->get_ref<const std::string&>())) {
      return fail(refused_request("Grammar error: invalid regex: unclosed group"));
    }
    if (const json* schema = field(*constraint, "json"); schema != nullptr) {
      if (auto checked = check_schema(*schema); !checked) return checked;
    }
  }
  const json* format = field(body, "response_format");
  if (format == nullptr || !format->is_object() || format->value("type", json()) != "json_schema") {
    return {};
  }
  const json* schema = field(*format, "json_schema");
  if (schema == nullptr) {
    return refuse_field(
        "When response_format type is 'json_schema', the 'json_schema' field must be provided.",
        "response_format");
  }
  const json* inner = field(*schema, "schema");
  return inner == nullptr ? Result<void>() : check_schema(*inner);
}

}  // namespace baton::sim
