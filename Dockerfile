# docker build -t wholefeed .
# docker run -d --name wholefeed -p 8080:8080 -v wholefeed:/data wholefeed && docker logs wholefeed

FROM python:3.14-slim AS build
WORKDIR /source
RUN python3 -m venv /opt/wholefeed
COPY constraints.txt .
RUN /opt/wholefeed/bin/python -m pip install --no-cache-dir --upgrade -c constraints.txt pip
COPY pyproject.toml README.md LICENSE ./
COPY release/hatch_build.py release/
COPY migrations migrations
COPY proxy proxy
# A wheel is built and installed; uvloop serves more requests a second, psycopg speaks with PostgreSQL where store.url
# names one; pip is not needed any more.
RUN /opt/wholefeed/bin/python -m pip install --no-cache-dir \
        -c constraints.txt --build-constraint constraints.txt '.[uvloop,postgres]' \
 && /opt/wholefeed/bin/wholefeed --version \
 && /opt/wholefeed/bin/python -m pip uninstall --yes pip

FROM python:3.14-slim
COPY --from=build /opt/wholefeed /opt/wholefeed
RUN mkdir /data && chown 10001:10001 /data
ENV PATH=/opt/wholefeed/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    WHOLEFEED_SERVER_HOST=0.0.0.0 \
    WHOLEFEED_STORE_PATH=/data/wholefeed.db
USER 10001:10001
# A config.toml in the volume is read.
WORKDIR /data
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s --retries=3 CMD ["wholefeed", "healthcheck"]
ENTRYPOINT ["wholefeed"]
CMD ["serve"]
