// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "app/line_channel.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>
#include <utility>

namespace baton::app {
namespace {

constexpr std::size_t kLongestLine = 1024;

}  // namespace

LineChannel::~LineChannel() { ::close(descriptor_); }

bool LineChannel::send(std::string_view line) {
  const std::string text = std::string(line) + '\n';
  const ssize_t sent = ::send(descriptor_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  return std::cmp_equal(sent, text.size());
}

std::vector<std::string> LineChannel::receive() {
  std::array<char, kLongestLine> buffer;
  while (!ended_) {
    const ssize_t size = ::recv(descriptor_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (size > 0) {
      begun_.append(buffer.data(), static_cast<std::size_t>(size));
      if (begun_.size() > 4 * kLongestLine) ended_ = true;
    } else if (size < 0 && errno == EINTR) {
      continue;
    } else if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      break;
    } else {
      ended_ = true;
    }
  }
  std::vector<std::string> lines;
  for (std::size_t end = begun_.find('\n'); end != std::string::npos; end = begun_.find('\n')) {
    lines.push_back(begun_.substr(0, end));
    begun_.erase(0, end + 1);
  }
  return lines;
}

}  // namespace baton::app
