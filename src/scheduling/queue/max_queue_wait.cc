// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/queue/max_queue_wait.h"

#include "config/values.h"

#include <fmt/format.h>

namespace baton::scheduling {

Result<MaxQueueWait> parse_max_queue_wait(std::string_view text, std::string_view where) {
  if (text == "wait") return MaxQueueWait::without_end();
  if (text == "fail-fast") return MaxQueueWait::none();
  const auto duration = config::parse_duration_or_zero(text);
  if (!duration) {
    return fail(Errc::InvalidRouting,
                fmt::format("{}: {} is not how long to wait; write wait, fail-fast or a duration "
                            "like 500ms or 2s",
                            where, config::shown(text)));
  }
  return MaxQueueWait{.at_most = *duration};
}

}  // namespace baton::scheduling
