// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// The types of a body's fields.
#include "tools/sim/vllm_body.h"

#include "tools/sim/dialect_fields.h"
#include "tools/sim/validation.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <span>
#include <utility>

namespace baton::sim {
namespace {

using nlohmann::json;

constexpr std::size_t kMessageKinds = 11;
constexpr std::size_t kFormatKinds = 3;

// In the order of the model, which is that of the errors.
constexpr std::array kChatFields{
    FieldRule{"model", FieldKind::Text},
    FieldRule{"frequency_penalty", FieldKind::Number},
    FieldRule{"logit_bias", FieldKind::Object},
    FieldRule{"logprobs", FieldKind::Bool},
    FieldRule{"top_logprobs", FieldKind::Integer},
    FieldRule{"max_tokens", FieldKind::Integer},
    FieldRule{"max_completion_tokens", FieldKind::Integer},
    FieldRule{"n", FieldKind::Integer},
    FieldRule{"presence_penalty", FieldKind::Number},
    FieldRule{"seed", FieldKind::Integer},
    FieldRule{"stream", FieldKind::Bool},
    FieldRule{"stream_options", FieldKind::Model},
    FieldRule{"temperature", FieldKind::Number},
    FieldRule{"top_p", FieldKind::Number},
    FieldRule{"tools", FieldKind::List},
    FieldRule{"user", FieldKind::Text},
};
constexpr std::array kCompletionFields{
    FieldRule{"model", FieldKind::Text},
    FieldRule{"echo", FieldKind::Bool},
    FieldRule{"frequency_penalty", FieldKind::Number},
    FieldRule{"logit_bias", FieldKind::Object},
    FieldRule{"logprobs", FieldKind::Integer},
    FieldRule{"max_tokens", FieldKind::Integer},
    FieldRule{"n", FieldKind::Integer, false},
    FieldRule{"presence_penalty", FieldKind::Number},
    FieldRule{"seed", FieldKind::Integer},
    FieldRule{"stream", FieldKind::Bool},
    FieldRule{"stream_options", FieldKind::Model},
    FieldRule{"suffix", FieldKind::Text},
    FieldRule{"temperature", FieldKind::Number},
    FieldRule{"top_p", FieldKind::Number},
    FieldRule{"user", FieldKind::Text},
};
constexpr std::array kCommonFields{
    FieldRule{"use_beam_search", FieldKind::Bool, false},
    FieldRule{"top_k", FieldKind::Integer},
    FieldRule{"min_p", FieldKind::Number},
    FieldRule{"repetition_penalty", FieldKind::Number},
    FieldRule{"stop_token_ids", FieldKind::List},
    FieldRule{"include_stop_str_in_output", FieldKind::Bool, false},
    FieldRule{"ignore_eos", FieldKind::Bool, false},
    FieldRule{"min_tokens", FieldKind::Integer, false},
    FieldRule{"skip_special_tokens", FieldKind::Bool, false},
    FieldRule{"prompt_logprobs", FieldKind::Integer},
    FieldRule{"structured_outputs", FieldKind::Model},
    FieldRule{"priority", FieldKind::Integer, false},
    FieldRule{"request_id", FieldKind::Text, false},
    FieldRule{"return_tokens_as_token_ids", FieldKind::Bool},
    FieldRule{"return_token_ids", FieldKind::Bool},
    FieldRule{"cache_salt", FieldKind::Text},
    FieldRule{"kv_transfer_params", FieldKind::Object},
    FieldRule{"stream_interval", FieldKind::Integer},
};

// Role. Reads the fields of one body and keeps those that are taken for something else.
// Confinement. One thread.
class Reader {
 public:
  explicit Reader(const json& body) : body_(body) {}

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

  // A text, a list of token ids, or a list of either.
  void read_prompt() {
    const auto found = body_.find("prompt");
    if (found == body_.end() || found->is_null() || found->is_string() || fits_prompt(*found)) {
      return;
    }
    add_elements(*found, "int_type", "Input should be a valid integer");
    add_elements(*found, "list_type", "Input should be a valid list");
    errors_.add("string_type", "body.prompt", "Input should be a valid string", *found);
    add_elements(*found, "string_type", "Input should be a valid string");
  }

  void read_stop() {
    const auto found = body_.find("stop");
    if (found == body_.end() || found->is_null() || found->is_string()) return;
    ValidationErrors of_list;
    if (!found->is_array()) {
      of_list.add("list_type", "body.stop", "Input should be a valid list", *found);
    } else {
      for (const json& one : *found) {
        if (!one.is_string()) of_list.add("string_type", "", "", one);
      }
    }
    if (of_list.empty()) return;
    errors_.add("string_type", "body.stop", "Input should be a valid string", *found);
    if (!found->is_array()) {
      errors_.add("list_type", "body.stop", "Input should be a valid list", *found);
      return;
    }
    for (std::size_t i = 0; i < found->size(); ++i) {
      if ((*found)[i].is_string()) continue;
      errors_.add("string_type", fmt::format("body.stop.{}", i), "Input should be a valid string",
                  (*found)[i]);
    }
  }

  void read_tools() {
    const json* tools = field(body_, "tools");
    if (tools == nullptr || !tools->is_array()) return;
    for (std::size_t i = 0; i < tools->size(); ++i) {
      const json& tool = (*tools)[i];
      const std::string loc = fmt::format("body.tools.{}", i);
      if (!tool.is_object()) {
        read_field({"", FieldKind::Model}, tool, loc, errors_);
      } else if (!tool.contains("function")) {
        errors_.add("missing", loc + ".function", "Field required", tool);
      } else if (!tool["function"].is_object()) {
        read_field({"", FieldKind::Model, false}, tool["function"], loc + ".function", errors_);
      } else if (!tool["function"].contains("name")) {
        errors_.add("missing", loc + ".function.name", "Field required", tool["function"]);
      }
    }
  }

  void read_response_format() {
    const json* format = field(body_, "response_format");
    if (format == nullptr) return;
    if (!format->is_object()) {
      errors_.add_union(kFormatKinds, "model_attributes_type", "body.response_format",
                        "Input should be a valid dictionary or object to extract fields from",
                        *format);
      return;
    }
    const json type = format->value("type", json());
    for (const char* known : {"text", "json_object", "json_schema", "structural_tag"}) {
      if (type == known) return;
    }
    errors_.add_union(2 * kFormatKinds, "literal_error", "body.response_format.type",
                      "Input should be 'text', 'json_object' or 'json_schema'", type);
  }

  Result<std::optional<json>> end() {
    if (!errors_.empty()) return fail(errors_.error());
    return std::move(typed_);
  }

 private:
  void read_message(std::size_t index, const json& message) {
    // The first of the kinds that a message can be of stands for all.
    const std::string loc =
        fmt::format("body.messages.{}.ChatCompletionDeveloperMessageParam", index);
    if (!message.is_object()) {
      errors_.add_union(kMessageKinds, "dict_type", loc, "Input should be a valid dictionary",
                        message);
    } else if (!message.contains("role")) {
      errors_.add_union(kMessageKinds, "missing", loc + ".role", "Field required", message);
    } else if (const json* content = field(message, "content");
               content != nullptr && !content->is_string() && !content->is_array()) {
      errors_.add_union(2 * kMessageKinds, "string_type", loc + ".content",
                        "Input should be a valid string", *content);
    }
  }

  static bool fits_prompt(const json& prompt) {
    if (!prompt.is_array()) return false;
    const auto all = [&prompt](auto is_right) {
      for (const json& one : prompt) {
        if (!is_right(one)) return false;
      }
      return true;
    };
    const auto is_id = [](const json& one) { return one.is_number_unsigned(); };
    return all(is_id) || all([](const json& one) { return one.is_string(); }) ||
           all([&is_id](const json& one) {
             if (!one.is_array()) return false;
             for (const json& id : one) {
               if (!is_id(id)) return false;
             }
             return true;
           });
  }

  void add_elements(const json& prompt, std::string_view type, std::string_view message) {
    if (!prompt.is_array()) {
      errors_.add("list_type", "body.prompt", "Input should be a valid list", prompt);
      return;
    }
    for (std::size_t i = 0; i < prompt.size(); ++i) {
      const json& one = prompt[i];
      const std::string loc = fmt::format("body.prompt.{}", i);
      if (type == "int_type" && one.is_number_integer()) {
        if (one < 0)
          errors_.add("greater_than_equal", loc, "Input should be greater than or equal to 0", one);
      } else if (type != "list_type" || !one.is_array()) {
        if (type != "string_type" || !one.is_string()) errors_.add(type, loc, message, one);
      }
    }
  }

  const json& body_;
  ValidationErrors errors_;
  std::optional<json> typed_;
};

Result<void> check_salt(const json& body) {
  constexpr std::size_t kLongest = 128;
  const auto salt = body.find("cache_salt");
  if (salt == body.end() || salt->is_null()) return {};
  const auto refuse = [](std::string_view message) {
    return fail(refused_parameter(message, "cache_salt"));
  };
  if (!salt->is_string() || salt->get_ref<const std::string&>().empty())
    return refuse("Parameter 'cache_salt' must be a non-empty string if provided.");
  const std::string& text = salt->get_ref<const std::string&>();
  if (text.size() > kLongest || text.find_first_of(std::string_view("@/\\\0", 4)) != text.npos) {
    return refuse(
        "Parameter 'cache_salt' must be at most 128 characters and must not contain '@', '/', "
        "'\\\\', or NUL.");
  }
  return {};
}

Result<void> check_prompt(const json& body) {
  const json* prompt = field(body, "prompt");
  if (prompt != nullptr && *prompt != "") return {};
  return fail(refused_parameter("Either prompt or prompt_embeds must be provided and non-empty.",
                                "prompt"));
}

Result<void> check_stream_options(const json& body) {
  const json* options = field(body, "stream_options");
  if (options == nullptr || options->empty()) return {};
  const json* stream = field(body, "stream");
  if (stream != nullptr && *stream != false && *stream != 0) return {};
  return fail(refused_parameter("Stream options can only be defined when `stream=True`.",
                                "stream_options"));
}

}  // namespace

Error refused_parameter(std::string_view message, std::string_view parameter,
                        std::string_view value) {
  Error error(Errc::InvalidRequest,
              value.empty()
                  ? fmt::format("{} (parameter={})", message, parameter)
                  : fmt::format("{} (parameter={}, value={})", message, parameter, value));
  error.with_param(std::string(parameter));
  return error;
}

Error refused_request(std::string message) {
  return Error(Errc::InvalidRequest, std::move(message));
}

Result<std::optional<json>> validate_vllm_body(Api api, const json& body) {
  Result<void> checked;
  if (api == Api::Chat) {
    checked = check_vllm_tools(body);
  } else {
    checked = check_prompt(body);
  }
  if (checked) checked = check_vllm_logprobs(api, body);
  if (checked) checked = check_stream_options(body);
  if (checked) checked = check_vllm_formats(body);
  if (checked) checked = check_salt(body);
  if (!checked) return fail(std::move(checked.error()));

  Reader reader(body);
  if (api == Api::Chat) {
    reader.read_messages();
    reader.read(kChatFields);
    reader.read_tools();
  } else {
    reader.read_prompt();
    reader.read(kCompletionFields);
  }
  reader.read_response_format();
  reader.read_stop();
  reader.read(kCommonFields);
  return reader.end();
}

}  // namespace baton::sim
