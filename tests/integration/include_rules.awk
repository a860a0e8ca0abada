# SPDX-License-Identifier: Apache-2.0
#
# Who may include whom. Input: lines "path:line:include directive", the path
# relative to the top of the tree, as grep -n prints them. Output: one line a
# violation. Exit status 1 when there was one.

# The part of the tree that a path belongs to; "" for what has no rules.
function part_of(path,    p)
{
	if (path ~ /^daemon\/[^\/]+\//) {
		split(path, p, "/")
		return p[2]
	}
	if (path ~ /^daemon\//)
		return "daemon"
	if (path ~ /^client\/npuctl\//)
		return "npuctl"
	if (path ~ /^client\/drv\//)
		return "drv"
	if (path ~ /^client\//)
		return "client"
	if (path ~ /^(kdrv|sim|proto|examples)\//)
		return substr(path, 1, index(path, "/") - 1)
	return ""
}

# Is `to` matched by one of the patterns in the row of `part`?
function allowed(part, to,    i, n, pat)
{
	n = split(may[part], pat, " ")
	for (i = 1; i <= n; i++)
		if (to ~ ("^" pat[i]))
			return 1
	return 0
}

function violation(text)
{
	printf "%s: includes %s: %s\n", where, inc, text
	bad = 1
}

BEGIN {
	# DESIGN.md 9, one row a part: what of ours it may include.
	may["util"] = "daemon/util/"
	may["conf"] = "daemon/conf/ daemon/util/"
	may["loop"] = "daemon/loop/ daemon/util/"
	may["hal"] = "daemon/hal/ daemon/util/ daemon/loop/ kdrv/uapi/"
	may["core"] = "daemon/core/ daemon/util/ daemon/conf/ daemon/loop/ daemon/hal/"
	may["rpc"] = "daemon/rpc/ daemon/util/ daemon/conf/ daemon/loop/ daemon/core/ proto/"
	may["mgmt"] = "daemon/mgmt/ daemon/util/ daemon/conf/ daemon/loop/ daemon/core/"
	may["daemon"] = "daemon/"
	may["proto"] = "proto/"
	may["client"] = "client/(acl|rt|drv|include)/ proto/ kdrv/uapi/npu_queue\\.h$"
	may["drv"] = may["client"]
	may["npuctl"] = "client/npuctl/ client/drv/admin\\.h$ client/include/"
	may["kdrv"] = "kdrv/"
	# The kernel image's layout is a public header: compiler, library and loader share it.
	may["sim"] = "sim/ kdrv/uapi/ kdrv/core/ client/include/npu/"
	may["examples"] = "examples/ client/include/"

	# One library in one place: header pattern, parts that may use it.
	lib["^event2/|^event\\.h$"] = "loop"
	lib["^systemd/sd-bus\\.h$"] = "mgmt"
	lib["^ini\\.h$"] = "conf"
	lib["^json-c/|^json\\.h$"] = "npuctl client"
	lib["^seccomp\\.h$|^linux/landlock\\.h$"] = "sim"
	lib["^(png|jpeglib)\\.h$"] = "examples"
	lib["^protobuf-c/"] = "proto rpc drv"
	lib["\\.pb-c\\.h$"] = "proto rpc drv"
}

{
	path = $0
	sub(/:.*/, "", path)
	where = $0
	sub(/:[ \t]*#.*/, "", where)
	inc = $0
	sub(/^[^:]*:[0-9]+:[ \t]*#[ \t]*include[ \t]*/, "", inc)
	quoted = inc ~ /^"/
	if (inc !~ /^["<]/)
		next
	inc = substr(inc, 2)
	sub(/[">].*/, "", inc)

	part = part_of(path)
	if (part == "" || inc == "config.h")
		next
	if (!(part in may)) {
		violation("no rule for the part daemon/" part "/")
		next
	}
	for (l in lib)
		if (inc ~ l && !index(" " lib[l] " ", " " part " "))
			violation("only " lib[l] " may, this is " part)

	to = inc
	if (inc ~ /(^|\/)\.\.?\//) {
		violation("write the path from the top of the tree")
		next
	}
	if (inc ~ /^(acl|npu)\//)
		to = "client/include/" inc
	else if (inc !~ /^(daemon|client|kdrv|sim|proto|tests|examples)\//) {
		if (!quoted)
			next
		to = path
		sub(/[^\/]*$/, inc, to)
	}
	if (!allowed(part, to))
		violation(part " may not")
}

END { exit bad }
