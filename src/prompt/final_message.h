// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "libs/jinja/value.h"

#include <string>
#include <string_view>

namespace baton::prompt {

// transformers 5 refuses to leave a message open for a template without the word "content" in it.

// continue_final_message as transformers 5 does it: a tag is put behind the text of the last
// message, and the rendered text ends where the tag is found. Templates know the tag. Differs in
// SGLang, which takes the last message off, renders with a generation prompt, and appends the
// message's text.

// Tags the last message; the text it had.
Result<std::string> tag_final_message(jinja::List& messages);
// Cuts at the tag; white space before it goes where the template trimmed the tag's own.
Result<std::string> cut_at_tag(std::string rendered, std::string_view final_text);

}  // namespace baton::prompt
