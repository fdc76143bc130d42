// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/events/recipient.h"

#include <algorithm>

namespace baton::kvcache {
namespace {

// The `<host>:<port>` in `kv@<host>:<port>@<model>`.
std::optional<std::string_view> named_authority(std::string_view topic) {
  const std::size_t first = topic.find('@');
  if (first == std::string_view::npos) return std::nullopt;
  const std::string_view rest = topic.substr(first + 1);
  const std::string_view authority = rest.substr(0, rest.find('@'));
  if (!authority.contains(':')) return std::nullopt;
  return authority;
}

}  // namespace

bool is_bound(std::string_view endpoint) {
  constexpr std::string_view kTcp = "tcp://";
  if (!endpoint.starts_with(kTcp)) return false;
  const std::string_view address = endpoint.substr(kTcp.size());
  const std::string_view host = address.substr(0, address.rfind(':'));
  return host == "*" || host == "0.0.0.0" || host == "::" || host == "[::]";
}

std::vector<const FeedSpec*> meant_by_topic(std::string_view topic,
                                            std::span<const FeedSpec* const> feeds) {
  std::vector<const FeedSpec*> meant;
  const auto authority = named_authority(topic);
  for (const FeedSpec* feed : feeds)
    if (topic.starts_with(feed->topic) && (!authority || feed->authority == *authority))
      meant.push_back(feed);
  std::size_t longest = 0;
  for (const FeedSpec* feed : meant) longest = std::max(longest, feed->topic.size());
  std::erase_if(meant, [longest](const FeedSpec* feed) { return feed->topic.size() < longest; });
  return meant;
}

}  // namespace baton::kvcache
