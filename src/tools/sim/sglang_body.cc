// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/sglang_body.h"

#include "tools/sim/dialect_fields.h"
#include "tools/sim/validation.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

namespace baton::sim {
namespace {

using nlohmann::json;

constexpr std::string_view kStumble = "Internal Server Error";

// In the order of the models, which is that of the errors. A field that is not nullable has a default.
constexpr std::array kSglangRanks{
    FieldRule{"routed_dp_rank", FieldKind::Integer},
    FieldRule{"data_parallel_rank", FieldKind::Integer},
    FieldRule{"disagg_prefill_dp_rank", FieldKind::Integer},
};
constexpr std::array kSglangChat{
    FieldRule{"model", FieldKind::Text, false},
    FieldRule{"frequency_penalty", FieldKind::Number, false},
    FieldRule{"logit_bias", FieldKind::Object},
    FieldRule{"logprobs", FieldKind::Bool, false},
    FieldRule{"top_logprobs", FieldKind::Integer},
    FieldRule{"max_tokens", FieldKind::Integer},
    FieldRule{"max_completion_tokens", FieldKind::Integer},
    FieldRule{"n", FieldKind::Integer, false},
    FieldRule{"presence_penalty", FieldKind::Number, false},
    FieldRule{"seed", FieldKind::Integer},
    FieldRule{"stream", FieldKind::Bool, false},
    FieldRule{"stream_options", FieldKind::Model},
    FieldRule{"temperature", FieldKind::Number},
    FieldRule{"top_p", FieldKind::Number},
    FieldRule{"user", FieldKind::Text},
    FieldRule{"tools", FieldKind::List},
    FieldRule{"return_cached_tokens_details", FieldKind::Bool, false},
    FieldRule{"return_prompt_token_ids", FieldKind::Bool, false},
    FieldRule{"return_token_ids", FieldKind::Bool, false},
    FieldRule{"return_meta_info", FieldKind::Bool, false},
    FieldRule{"return_input_ids_in_sglext", FieldKind::Bool, false},
    FieldRule{"return_output_ids_in_sglext", FieldKind::Bool, false},
    FieldRule{"top_k", FieldKind::Integer},
    FieldRule{"min_p", FieldKind::Number},
    FieldRule{"min_tokens", FieldKind::Integer, false},
    FieldRule{"regex", FieldKind::Text},
    FieldRule{"ebnf", FieldKind::Text},
    FieldRule{"repetition_penalty", FieldKind::Number},
    FieldRule{"ignore_eos", FieldKind::Bool, false},
    FieldRule{"skip_special_tokens", FieldKind::Bool, false},
    FieldRule{"chat_template_kwargs", FieldKind::Object},
    FieldRule{"priority", FieldKind::Integer},
};
constexpr std::array kSglangCompletion{
    FieldRule{"best_of", FieldKind::Integer},
    FieldRule{"echo", FieldKind::Bool, false},
    FieldRule{"frequency_penalty", FieldKind::Number, false},
    FieldRule{"logit_bias", FieldKind::Object},
    FieldRule{"logprobs", FieldKind::Integer},
    FieldRule{"max_tokens", FieldKind::Integer, false},
    FieldRule{"n", FieldKind::Integer, false},
    FieldRule{"presence_penalty", FieldKind::Number, false},
    FieldRule{"seed", FieldKind::Integer},
    FieldRule{"stream", FieldKind::Bool, false},
    FieldRule{"stream_options", FieldKind::Model},
    FieldRule{"suffix", FieldKind::Text},
    FieldRule{"temperature", FieldKind::Number, false},
    FieldRule{"top_p", FieldKind::Number, false},
    FieldRule{"user", FieldKind::Text},
    FieldRule{"return_cached_tokens_details", FieldKind::Bool, false},
    FieldRule{"return_token_ids", FieldKind::Bool, false},
    FieldRule{"top_k", FieldKind::Integer, false},
    FieldRule{"min_p", FieldKind::Number, false},
    FieldRule{"min_tokens", FieldKind::Integer, false},
    FieldRule{"json_schema", FieldKind::Text},
    FieldRule{"regex", FieldKind::Text},
    FieldRule{"ebnf", FieldKind::Text},
    FieldRule{"repetition_penalty", FieldKind::Number, false},
    FieldRule{"ignore_eos", FieldKind::Bool, false},
    FieldRule{"skip_special_tokens", FieldKind::Bool, false},
    FieldRule{"priority", FieldKind::Integer},
};

SglangRoute served_by(Api api) {
  if (api == Api::Chat) return {"openai_v1_chat_completions", "POST /v1/chat/completions"};
  return {"openai_v1_completions", "POST /v1/completions"};
}

void read_list(const json& value, const FieldRule& one, const std::string& loc,
               ValidationErrors& errors) {
  if (!value.is_array()) {
    errors.add("list_type", loc, "Input should be a valid list", value);
    return;
  }
  for (std::size_t i = 0; i < value.size(); ++i)
    read_field(one, value[i], fmt::format("{}.{}", loc, i), errors);
}

void read_lists(const json& value, const FieldRule& one, const std::string& loc,
                ValidationErrors& errors) {
  if (!value.is_array()) {
    errors.add("list_type", loc, "Input should be a valid list", value);
    return;
  }
  for (std::size_t i = 0; i < value.size(); ++i)
    read_list(value[i], one, fmt::format("{}.{}", loc, i), errors);
}

bool all_texts(const json& list) {
  return list.is_array() &&
         std::ranges::all_of(list, [](const json& one) { return one.is_string(); });
}

// Role. Reads the fields of one body and keeps those that are taken for something else.
// Confinement. One thread.
class SglangReader {
 public:
  explicit SglangReader(const json& body) : body_(body) {}

  void read(std::span<const FieldRule> rules) {
    for (const FieldRule& rule : rules) {
      const auto found = body_.find(rule.name);
      if (found == body_.end()) continue;
      auto taken = read_field(rule, *found, fmt::format("body.{}", rule.name), errors_);
      if (!taken) continue;
      if (!typed_) typed_ = body_;
      (*typed_)[std::string(rule.name)] = std::move(*taken);
    }
  }

  // Either a list or one of it. The list is what Pydantic tries first.
  void read_either(const char* name, const FieldRule& one) {
    const json* value = field(body_, name);
    if (value == nullptr) return;
    const std::string_view kind = one.kind == FieldKind::Text ? "str" : "int";
    const std::string list = one.nullable ? fmt::format("body.{}.list[nullable[{}]]", name, kind)
                                          : fmt::format("body.{}.list[{}]", name, kind);
    ValidationErrors as_list;
    ValidationErrors alone;
    read_list(*value, one, list, as_list);
    read_field(one, *value, "", alone);
    if (as_list.empty() || alone.empty()) return;
    read_list(*value, one, list, errors_);
    read_field(one, *value, fmt::format("body.{}.{}", name, kind), errors_);
  }

  void read_ids(const char* name) {
    const json* value = field(body_, name);
    if (value != nullptr)
      read_list(*value, {"", FieldKind::Integer, false}, fmt::format("body.{}", name), errors_);
  }

  void read_messages() {
    const auto found = body_.find("messages");
    if (found == body_.end()) {
      errors_.add("missing", "body.messages", "Field required", body_);
    } else if (!found->is_array()) {
      errors_.add("list_type", "body.messages", "Input should be a valid list", *found);
    } else {
      for (std::size_t i = 0; i < found->size(); ++i) read_message(i, (*found)[i]);
    }
  }

  // Token ids, lists of them, a text or texts; what is none of them is told to be wrong as each.
  void read_prompt() {
    const auto found = body_.find("prompt");
    if (found == body_.end()) {
      errors_.add("missing", "body.prompt", "Field required", body_);
      return;
    }
    const FieldRule id{"", FieldKind::Integer, false};
    const FieldRule text{"", FieldKind::Text, false};
    ValidationErrors as_ids;
    ValidationErrors as_lists;
    ValidationErrors as_texts;
    read_list(*found, id, "", as_ids);
    read_lists(*found, id, "", as_lists);
    read_list(*found, text, "", as_texts);
    if (as_ids.empty() || as_lists.empty() || as_texts.empty() || found->is_string()) return;
    read_list(*found, id, "body.prompt.list[int]", errors_);
    read_lists(*found, id, "body.prompt.list[list[int]]", errors_);
    errors_.add("string_type", "body.prompt.str", "Input should be a valid string", *found);
    read_list(*found, text, "body.prompt.list[str]", errors_);
  }

  void read_tools() {
    const json* tools = field(body_, "tools");
    if (tools == nullptr || !tools->is_array()) return;
    for (std::size_t i = 0; i < tools->size(); ++i) {
      const json& tool = (*tools)[i];
      const json* function = tool.is_object() ? field(tool, "function") : nullptr;
      const std::string loc = fmt::format("body.tools.{}.function", i);
      if (function == nullptr) {
        errors_.add("missing", loc, "Field required", tool);
      } else if (!function->contains("name")) {
        errors_.add("missing", loc + ".name", "Field required", {{"key_order", json::array()}});
      }
    }
  }

  void read_tool_choice() {
    const json* choice = field(body_, "tool_choice");
    if (choice == nullptr || choice->is_object()) return;
    for (const char* known : {"auto", "required", "none"}) {
      if (*choice == known) return;
    }
    read_field({"", FieldKind::Model, false}, *choice, "body.tool_choice.ToolChoice", errors_);
    errors_.add_with(R"({'expected': "'auto', 'required' or 'none'"})", "literal_error",
                     "body.tool_choice.literal['auto','required','none']",
                     "Input should be 'auto', 'required' or 'none'", *choice);
  }

  void read_response_format() {
    const json* format = field(body_, "response_format");
    if (format == nullptr) return;
    constexpr std::size_t kFormatErrors = 6;
    const json type = format->is_object() ? format->value("type", json()) : json();
    for (const char* known : {"text", "json_object", "json_schema", "structural_tag"}) {
      if (type == known) return;
    }
    errors_.add_union(kFormatErrors, "literal_error", "body.response_format.ResponseFormat.type",
                      "Input should be 'text', 'json_object' or 'json_schema'", type);
  }

  void read_positive_limit() {
    const json& body = typed_ ? *typed_ : body_;
    const json* limit = field(body, "max_tokens");
    if (limit == nullptr || !limit->is_number_integer() || *limit > 0) return;
    errors_.add_with("{'error': ValueError('max_tokens must be positive')}", "value_error",
                     "body.max_tokens", "Value error, max_tokens must be positive", *limit);
  }

  Result<std::optional<json>> end(Api api) {
    const SglangRoute by = served_by(api);
    if (!errors_.empty()) return fail(errors_.sglang_error(by.function, by.request));
    return std::move(typed_);
  }

 private:
  // The first of the two kinds that a message can be of stands for both.
  void read_message(std::size_t index, const json& message) {
    const std::string loc =
        fmt::format("body.messages.{}.ChatCompletionMessageGenericParam", index);
    const json* role = message.is_object() ? field(message, "role") : nullptr;
    const json* content = message.is_object() ? field(message, "content") : nullptr;
    const bool user = role != nullptr && *role == "user";
    if (!message.is_object()) {
      errors_.add_union(2, "model_attributes_type", loc, "Input should be a valid dictionary",
                        message);
    } else if (role == nullptr) {
      errors_.add_union(2, "missing", loc + ".role", "Field required", message);
    } else if (user && content == nullptr) {
      errors_.add_union(2, "missing", loc + ".content", "Field required", message);
    } else if (!user && !is_role(*role)) {
      errors_.add_union(2, "value_error", loc + ".role", "Value error, 'role' must be one of",
                        *role);
    } else if (content != nullptr && !content->is_string() && !content->is_array()) {
      errors_.add_union(2, "string_type", loc + ".content", "Input should be a valid string",
                        *content);
    } else if (content != nullptr && content->is_array()) {
      read_parts(*content, loc);
    }
  }

  static bool is_role(const json& role) {
    for (const char* known :
         {"system", "assistant", "tool", "function", "developer", "latest_reminder", "root"}) {
      if (role == known) return true;
    }
    return false;
  }

  void read_parts(const json& parts, const std::string& loc) {
    static constexpr std::array<std::string_view, 9> kPartKinds{
        "text",     "image_url",      "video_url", "audio_url", "input_audio",
        "thinking", "tool_reference", "image",     "refusal"};
    for (const json& part : parts) {
      const json type = part.is_object() ? part.value("type", json()) : json();
      bool known = false;
      for (const std::string_view one : kPartKinds) known = known || type == one;
      if (!known)
        errors_.add_union(2, "literal_error", loc + ".content", "Input should be 'text'", type);
    }
  }

  const json& body_;
  ValidationErrors errors_;
  std::optional<json> typed_;
};

}  // namespace

Error sglang_refusal(std::string message, std::string_view type) {
  Error error(Errc::InvalidRequest, std::move(message));
  error.with_param(std::string(type));
  return error;
}

Error sglang_stumbles() { return Error(Errc::Internal, std::string(kStumble)); }

bool is_stumble(const Error& error) {
  return error.code() == Errc::Internal && error.message() == kStumble;
}

Error unreadable_sglang_body(Api api, const json& body) {
  // A chat's model looks into what it takes for an object before it looks whether it is one.
  if (api == Api::Chat && !body.is_discarded() && !body.is_null()) return sglang_stumbles();
  return unreadable_sglang_body(served_by(api), body);
}

Error unreadable_sglang_body(const SglangRoute& route, const json& body) {
  ValidationErrors errors;
  if (body.is_discarded()) {
    errors.add_with("{'error': 'unexpected character'}", "json_invalid", "body.0",
                    "JSON decode error", json::object());
  } else if (body.is_null()) {
    errors.add("missing", "body", "Field required", body);
  } else {
    read_field({"", FieldKind::Model, false}, body, "body", errors);
  }
  return errors.sglang_error(route.function, route.request);
}

Result<void> check_sglang_tokenize(std::string_view path, const json& body) {
  ValidationErrors errors;
  const json* prompt = field(body, "prompt");
  const FieldRule text{"", FieldKind::Text, false};
  if (prompt != nullptr && !prompt->is_string() && !all_texts(*prompt)) {
    read_list(*prompt, text, "body.prompt.list[str]", errors);
    read_field(text, *prompt, "body.prompt.str", errors);
  } else if ((prompt != nullptr) == (field(body, "messages") != nullptr)) {
    constexpr std::string_view kRule = "Exactly one of 'prompt' or 'messages' must be provided.";
    errors.add_with(fmt::format(R"({{'error': ValueError("{}")}})", kRule), "value_error", "body",
                    fmt::format("Value error, {}", kRule), body);
  }
  if (errors.empty()) return {};
  return fail(errors.sglang_error("openai_v1_tokenize", fmt::format("POST {}", path)));
}

Result<void> check_sglang_detokenize(std::string_view path, const json& body) {
  ValidationErrors errors;
  const FieldRule id{"", FieldKind::Integer, false};
  const auto tokens = body.find("tokens");
  if (tokens == body.end()) {
    errors.add("missing", "body.tokens", "Field required", body);
  } else {
    ValidationErrors as_ids;
    ValidationErrors as_lists;
    read_list(*tokens, id, "body.tokens.list[int]", as_ids);
    read_lists(*tokens, id, "body.tokens.list[list[int]]", as_lists);
    if (as_ids.empty() || as_lists.empty()) return {};
    read_list(*tokens, id, "body.tokens.list[int]", errors);
    read_lists(*tokens, id, "body.tokens.list[list[int]]", errors);
  }
  return fail(errors.sglang_error("openai_v1_detokenize", fmt::format("POST {}", path)));
}

Result<void> check_sglang_abort(const std::string& body) {
  const json request = body.empty() ? json() : json::parse(body, nullptr, false);
  if (request.is_object()) return {};
  return fail(unreadable_sglang_body({"abort_request", "POST /abort_request"}, request));
}

Result<std::optional<json>> validate_sglang_body(Api api, const json& body) {
  if (api == Api::Chat) {
    const json* format = field(body, "response_format");
    if (format != nullptr && !format->is_object()) return fail(sglang_stumbles());
  }
  SglangReader reader(body);
  const FieldRule text{"", FieldKind::Text, false};
  const FieldRule number{"", FieldKind::Integer, false};
  reader.read_either("bootstrap_host", text);
  reader.read_either("bootstrap_port", {"", FieldKind::Integer});
  reader.read_either("bootstrap_room", number);
  reader.read(kSglangRanks);
  if (api == Api::Chat) {
    reader.read_messages();
    reader.read(kSglangChat);
    reader.read_tools();
    reader.read_tool_choice();
    reader.read_ids("input_ids");
  } else {
    constexpr std::array kModel{FieldRule{"model", FieldKind::Text, false}};
    reader.read(kModel);
    reader.read_prompt();
    reader.read(kSglangCompletion);
    reader.read_positive_limit();
  }
  reader.read_response_format();
  reader.read_either("stop", text);
  reader.read_ids("stop_token_ids");
  for (const char* name : {"rid", "extra_key", "cache_salt"}) reader.read_either(name, text);
  return reader.end(api);
}

}  // namespace baton::sim
