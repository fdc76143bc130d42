// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/view/cache_trust.h"

namespace baton::kvcache {

std::string_view to_string(Trusted trusted) {
  switch (trusted) {
    case Trusted::Nothing:
      return "nothing";
    case Trusted::Events:
      return "events";
    case Trusted::Decisions:
      break;
  }
  return "decisions";
}

std::string_view to_string(FeedHealth health) {
  switch (health) {
    case FeedHealth::None:
      return "none";
    case FeedHealth::Waiting:
      return "waiting";
    case FeedHealth::Live:
      return "live";
    case FeedHealth::Silent:
      return "silent";
    case FeedHealth::Unreachable:
      return "unreachable";
    case FeedHealth::Mixed:
      return "mixed";
    case FeedHealth::Broken:
      break;
  }
  return "broken";
}

}  // namespace baton::kvcache
