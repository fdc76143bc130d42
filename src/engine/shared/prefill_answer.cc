// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/prefill_answer.h"

#include "engine/shared/completion_json.h"
#include "engine/shared/engine_error.h"
#include "wire/json_array.h"

#include <utility>

namespace baton::engine {

Result<PrefillAnswer> parse_prefill_answer(const std::string& json) {
  auto completion = wire::JsonObject::parse(json);
  if (!completion) return fail(Errc::EngineProtocol, "the prefill answer is not a JSON object");
  const auto error = completion->find("error");
  if ((error && *error != "null") || completion->find_string("object") == "error") {
    return fail(read_stream_error(json, StreamBegun::Yes));
  }
  auto finish = finish_reason_of(*completion);
  if (!finish) return fail(std::move(finish.error()));
  auto choice = wire::JsonObject::within(*wire::first_element(*completion->find("choices")));
  return PrefillAnswer{std::move(*completion), std::move(*choice), std::move(*finish)};
}

Result<PrefillAnswer> parse_sound_prefill_answer(const std::string& json) {
  auto answer = parse_prefill_answer(json);
  if (answer && means_failure(answer->finish_reason)) {
    return fail(Errc::EngineFailed, "the prefill worker gave the request up (finish_reason " +
                                        answer->finish_reason + ")");
  }
  return answer;
}

}  // namespace baton::engine
