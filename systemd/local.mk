# SPDX-License-Identifier: Apache-2.0
systemd_units_in = systemd/npud.service.in systemd/npu-sim@.service.in
systemd_sed = $(AM_V_GEN)$(MKDIR_P) systemd && $(SED) -e 's|@sbindir[@]|$(sbindir)|g' \
	-e 's|@libexecdir[@]|$(libexecdir)|g' -e 's|@sysconfdir[@]|$(sysconfdir)|g'

nodist_systemdsystemunit_DATA = systemd/npud.service systemd/npu-sim@.service
dist_systemdsystemunit_DATA = systemd/npud.socket
dist_sysusers_DATA = systemd/sysusers.d/npud.conf
dist_tmpfiles_DATA = systemd/tmpfiles.d/npud.conf

# udev reads this below /usr and /usr/local.
udevrulesdir = $(prefix)/lib/udev/rules.d
dist_udevrules_DATA = systemd/60-npud.rules

# Who may be npud on the system bus and who may talk to it; what polkit asks before Reset and Drain.
dbuspolicydir = $(datadir)/dbus-1/system.d
dist_dbuspolicy_DATA = systemd/org.npud.conf
polkitactionsdir = $(datadir)/polkit-1/actions
dist_polkitactions_DATA = systemd/org.npud.policy

EXTRA_DIST += $(systemd_units_in) systemd/npud.conf
CLEANFILES += systemd/npud.service systemd/npu-sim@.service

systemd/npud.service: systemd/npud.service.in Makefile
	$(systemd_sed) $(srcdir)/systemd/npud.service.in >$@

systemd/npu-sim@.service: systemd/npu-sim@.service.in Makefile
	$(systemd_sed) $(srcdir)/systemd/npu-sim@.service.in >$@

# A configuration that the administrator has changed stays, on install and on uninstall.
npudconf = $(DESTDIR)$(sysconfdir)/npud/npud.conf

install-data-local: install-npud-conf
uninstall-local: uninstall-npud-conf
.PHONY: install-npud-conf uninstall-npud-conf

install-npud-conf:
	$(MKDIR_P) "$(DESTDIR)$(sysconfdir)/npud"
	test -e "$(npudconf)" || $(INSTALL_DATA) $(srcdir)/systemd/npud.conf "$(npudconf)"

uninstall-npud-conf:
	! cmp -s $(srcdir)/systemd/npud.conf "$(npudconf)" || rm -f "$(npudconf)"
