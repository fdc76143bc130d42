// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

// All that a user of the library needs: templates, their variables, errors, and questions about the
// source of a template.
#include "libs/jinja/ast_query.h"  // IWYU pragma: export
#include "libs/jinja/error.h"      // IWYU pragma: export
#include "libs/jinja/template.h"   // IWYU pragma: export
#include "libs/jinja/value.h"      // IWYU pragma: export
