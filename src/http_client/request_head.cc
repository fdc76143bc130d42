// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "http_client/request_head.h"

#include <string>

namespace baton::http_client {

std::string request_head(std::string_view method, std::string_view path, std::string_view authority,
                         const wire::Headers& headers, std::size_t content_length,
                         std::string_view own) {
  std::string head;
  head.reserve(512);
  head.append(method).append(" ").append(path).append(" HTTP/1.1\r\nHost: ");
  head.append(authority).append("\r\n");
  for (std::size_t i = 0; i < headers.size(); ++i) {
    const auto [name, value] = headers[i];
    head.append(name).append(": ").append(value).append("\r\n");
  }
  head.append(own);
  // vLLM and SGLang refuse a body that is not called JSON.
  if (content_length > 0) head.append("Content-Type: application/json\r\n");
  head.append("Content-Length: ").append(std::to_string(content_length)).append("\r\n\r\n");
  return head;
}

}  // namespace baton::http_client
